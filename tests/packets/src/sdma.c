/* Packets of one generation of copy engines. HEADER is the kernel's header for it,
 * GENERATION its name, COUNT_LESS what a count is written less by; CACHES is 1
 * where its engines take requests for caches, 2 where those have six dwords; WIDE
 * where the header has the 30 bits that a count can have.
 */
#include HEADER
#include "case.h"

int main(void)
{
#define COPY_OF(name, bytes)                                                        \
	PACKET(name,                                                                \
	       SDMA_PKT_COPY_LINEAR_HEADER_OP(SDMA_OP_COPY) |                       \
		       SDMA_PKT_COPY_LINEAR_HEADER_SUB_OP(SDMA_SUBOP_COPY_LINEAR),  \
	       SDMA_PKT_COPY_LINEAR_COUNT_COUNT((bytes) - COUNT_LESS), 0,           \
	       SDMA_PKT_COPY_LINEAR_SRC_ADDR_LO_SRC_ADDR_31_0(LOW(from)),           \
	       SDMA_PKT_COPY_LINEAR_SRC_ADDR_HI_SRC_ADDR_63_32(HIGH(from)),         \
	       SDMA_PKT_COPY_LINEAR_DST_ADDR_LO_DST_ADDR_31_0(LOW(to)),             \
	       SDMA_PKT_COPY_LINEAR_DST_ADDR_HI_DST_ADDR_63_32(HIGH(to)))
#define FILL_OF(name, bytes)                                                        \
	PACKET(name,                                                                \
	       SDMA_PKT_CONSTANT_FILL_HEADER_OP(SDMA_OP_CONST_FILL) |               \
		       SDMA_PKT_CONSTANT_FILL_HEADER_FILLSIZE(2),                   \
	       SDMA_PKT_CONSTANT_FILL_DST_ADDR_LO_DST_ADDR_31_0(LOW(dword_at)),     \
	       SDMA_PKT_CONSTANT_FILL_DST_ADDR_HI_DST_ADDR_63_32(HIGH(dword_at)),   \
	       SDMA_PKT_CONSTANT_FILL_DATA_SRC_DATA_31_0(value),                    \
	       SDMA_PKT_CONSTANT_FILL_COUNT_COUNT((bytes) - COUNT_LESS))
#define WRITE_OF(name, dwords)                                                      \
	PACKET(name,                                                                \
	       SDMA_PKT_WRITE_UNTILED_HEADER_OP(SDMA_OP_WRITE) |                    \
		       SDMA_PKT_WRITE_UNTILED_HEADER_SUB_OP(SDMA_SUBOP_WRITE_LINEAR), \
	       SDMA_PKT_WRITE_UNTILED_DST_ADDR_LO_DST_ADDR_31_0(LOW(dword_at)),     \
	       SDMA_PKT_WRITE_UNTILED_DST_ADDR_HI_DST_ADDR_63_32(HIGH(dword_at)),   \
	       SDMA_PKT_WRITE_UNTILED_DW_3_COUNT((dwords) - COUNT_LESS))

	PACKET("nop", SDMA_PKT_NOP_HEADER_OP(SDMA_OP_NOP));
	WRITE_OF("write-5", 5);
	WRITE_OF("write-80000", 0x80000);
	COPY_OF("copy-1", 1);
	COPY_OF("copy-12345", 0x12345);
	COPY_OF("copy-1fffff", 0x1fffff);
	FILL_OF("fill-4", 4);
	FILL_OF("fill-1ffffc", 0x1ffffc);
#ifdef WIDE
	COPY_OF("copy-40000000", 0x40000000);
	FILL_OF("fill-40000000", 0x40000000);
#endif
	PACKET("fence",
	       SDMA_PKT_FENCE_HEADER_OP(SDMA_OP_FENCE)
#ifdef CACHES
		       | SDMA_PKT_FENCE_HEADER_MTYPE(3)
#endif
		       ,
	       SDMA_PKT_FENCE_ADDR_LO_ADDR_31_0(LOW(dword_at)),
	       SDMA_PKT_FENCE_ADDR_HI_ADDR_63_32(HIGH(dword_at)),
	       SDMA_PKT_FENCE_DATA_DATA(value));
	PACKET("trap", SDMA_PKT_TRAP_HEADER_OP(SDMA_OP_TRAP),
	       SDMA_PKT_TRAP_INT_CONTEXT_INT_CONTEXT(event));
	PACKET("trap-ffffffff", SDMA_PKT_TRAP_HEADER_OP(SDMA_OP_TRAP),
	       SDMA_PKT_TRAP_INT_CONTEXT_INT_CONTEXT(0xffffffff));
	PACKET("wait",
	       SDMA_PKT_POLL_REGMEM_HEADER_OP(SDMA_OP_POLL_REGMEM) |
		       SDMA_PKT_POLL_REGMEM_HEADER_FUNC(3) |
		       SDMA_PKT_POLL_REGMEM_HEADER_MEM_POLL(1u),
	       SDMA_PKT_POLL_REGMEM_ADDR_LO_ADDR_31_0(LOW(dword_at)),
	       SDMA_PKT_POLL_REGMEM_ADDR_HI_ADDR_63_32(HIGH(dword_at)),
	       SDMA_PKT_POLL_REGMEM_VALUE_VALUE(value),
	       SDMA_PKT_POLL_REGMEM_MASK_MASK(0xffffffff),
	       SDMA_PKT_POLL_REGMEM_DW5_INTERVAL(4) |
		       SDMA_PKT_POLL_REGMEM_DW5_RETRY_COUNT(0xfff));
#ifdef CACHES
	const uint32_t release = SDMA_GCR_GL2_WB | SDMA_GCR_GLK_WB;
	const uint32_t acquire = release | SDMA_GCR_GL2_INV | SDMA_GCR_GL1_INV |
				 SDMA_GCR_GLV_INV | SDMA_GCR_GLK_INV;
	const uint32_t header = SDMA_PKT_GCR_REQ_HEADER_OP(SDMA_OP_GCR_REQ) |
				SDMA_PKT_GCR_REQ_HEADER_SUB_OP(1);
#if CACHES == 2
	PACKET("acquire", header, 0, 0,
	       SDMA_PKT_GCR_REQ_PAYLOAD3_GCR_CONTROL_18_0(acquire), 0, 0);
	PACKET("release", header, 0, 0,
	       SDMA_PKT_GCR_REQ_PAYLOAD3_GCR_CONTROL_18_0(release), 0, 0);
#else
	PACKET("acquire", header, 0, SDMA_PKT_GCR_REQ_PAYLOAD2_GCR_CONTROL_15_0(acquire),
	       SDMA_PKT_GCR_REQ_PAYLOAD3_GCR_CONTROL_18_16(acquire >> 16), 0);
	PACKET("release", header, 0, SDMA_PKT_GCR_REQ_PAYLOAD2_GCR_CONTROL_15_0(release),
	       SDMA_PKT_GCR_REQ_PAYLOAD3_GCR_CONTROL_18_16(release >> 16), 0);
#endif
#endif
	return 0;
}
