/* Packets of gfx7's copy engines, whose header has only a macro for the first dword
 * and names for what its high half says.
 */
#include HEADER
#include "case.h"

int main(void)
{
#define COPY_OF(name, bytes)                                                       \
	PACKET(name, SDMA_PACKET(SDMA_OPCODE_COPY, SDMA_COPY_SUB_OPCODE_LINEAR, 0), \
	       bytes, 0, LOW(from), HIGH(from), LOW(to), HIGH(to))
#define FILL_OF(name, bytes)                                                       \
	PACKET(name,                                                               \
	       SDMA_PACKET(SDMA_OPCODE_CONSTANT_FILL, 0,                           \
			   SDMA_CONSTANT_FILL_EXTRA_SIZE(2)),                      \
	       LOW(dword_at), HIGH(dword_at), value, bytes)
#define WRITE_OF(name, dwords)                                                     \
	PACKET(name, SDMA_PACKET(SDMA_OPCODE_WRITE, SDMA_WRITE_SUB_OPCODE_LINEAR, 0), \
	       LOW(dword_at), HIGH(dword_at), dwords)

	PACKET("nop", SDMA_PACKET(SDMA_OPCODE_NOP, 0, 0));
	WRITE_OF("write-5", 5);
	WRITE_OF("write-80000", 0x80000);
	COPY_OF("copy-1", 1);
	COPY_OF("copy-12345", 0x12345);
	COPY_OF("copy-1fffff", 0x1fffff);
	FILL_OF("fill-4", 4);
	FILL_OF("fill-1ffffc", 0x1ffffc);
	PACKET("fence", SDMA_PACKET(SDMA_OPCODE_FENCE, 0, 0), LOW(dword_at), HIGH(dword_at),
	       value);
	PACKET("trap", SDMA_PACKET(SDMA_OPCODE_TRAP, 0, 0), event);
	PACKET("wait",
	       SDMA_PACKET(SDMA_OPCODE_POLL_REG_MEM, 0,
			   SDMA_POLL_REG_MEM_EXTRA_FUNC(3) | SDMA_POLL_REG_MEM_EXTRA_M),
	       LOW(dword_at), HIGH(dword_at), value, 0xffffffff, 0xfff << 16 | 4);
	return 0;
}
