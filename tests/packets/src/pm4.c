/* Packets of one generation of compute engines. HEADER is the kernel's header for it,
 * GENERATION its name, MAJOR and MINOR its number. Which caches a release and an
 * acquire name is what the kernel's own fences and memory syncs name.
 */
#include HEADER
#include "case.h"

/* From the enumerations of events, which are in other headers. */
#define FLUSH_AND_INVALIDATE 0x14
#define COMPUTE_PARTIAL_FLUSH 7

#if MAJOR == 7
#define OF(op, n) PACKET3_COMPUTE(op, n)
#else
#define OF(op, n) PACKET3(op, n)
#endif

#if MAJOR == 7
#define RELEASED (EOP_TCL1_ACTION_EN | EOP_TC_ACTION_EN)
#elif MAJOR == 8
#define RELEASED (EOP_TCL1_ACTION_EN | EOP_TC_ACTION_EN | EOP_TC_WB_ACTION_EN)
#elif MAJOR == 9
#define RELEASED                                                          \
	(EOP_TCL1_ACTION_EN | EOP_TC_ACTION_EN | EOP_TC_MD_ACTION_EN |    \
	 EOP_TC_WB_ACTION_EN)
#elif MAJOR < 12
#define RELEASED                                                          \
	(PACKET3_RELEASE_MEM_GCR_SEQ | PACKET3_RELEASE_MEM_GCR_GL2_WB |   \
	 PACKET3_RELEASE_MEM_GCR_GLM_INV | PACKET3_RELEASE_MEM_GCR_GLM_WB | \
	 PACKET3_RELEASE_MEM_CACHE_POLICY(3))
#elif MINOR == 0
#define RELEASED                                                          \
	(PACKET3_RELEASE_MEM_GCR_SEQ | PACKET3_RELEASE_MEM_GCR_GL2_WB |   \
	 PACKET3_RELEASE_MEM_CACHE_POLICY(3))
#else
#define RELEASED                                                            \
	(PACKET3_RELEASE_MEM__GCR_SEQ(1) | PACKET3_RELEASE_MEM__GCR_GLV_WB | \
	 PACKET3_RELEASE_MEM__GCR_GL2_WB |                                  \
	 PACKET3_RELEASE_MEM__GCR_GL2_SCOPE(2) | PACKET3_RELEASE_MEM__TEMPORAL(3))
#endif

#if MINOR == 0
#define WRITE_TO WRITE_DATA_DST_SEL(5) | WR_CONFIRM
#define WAIT_FOR WAIT_REG_MEM_FUNCTION(3) | WAIT_REG_MEM_MEM_SPACE(1) | WAIT_REG_MEM_OPERATION(0)
#define BUFFER(dwords) (dwords) | INDIRECT_BUFFER_VALID
#define EVENT(type, index) EVENT_TYPE(type) | EVENT_INDEX(index)
#else
#define WRITE_TO PACKET3_WRITE_DATA__DST_SEL(5) | PACKET3_WRITE_DATA__WR_CONFIRM(1)
#define WAIT_FOR                                                           \
	PACKET3_WAIT_REG_MEM__FUNCTION(3) | PACKET3_WAIT_REG_MEM__MEM_SPACE(1) | \
		PACKET3_WAIT_REG_MEM__OPERATION(0)
#define BUFFER(dwords) PACKET3_INDIRECT_BUFFER__IB_SIZE(dwords) | PACKET3_INDIRECT_BUFFER__VALID(1)
#define EVENT(type, index) \
	PACKET3_EVENT_WRITE__EVENT_TYPE(type) | PACKET3_EVENT_WRITE__EVENT_INDEX(index)
#endif

#if MAJOR < 9
#define RELEASE_OF(name, data, interrupt, at, what, number)                       \
	PACKET(name, OF(PACKET3_RELEASE_MEM, 5),                                  \
	       RELEASED | EVENT(FLUSH_AND_INVALIDATE, 5),                         \
	       SELECT(data, interrupt), LOW(at), HIGH(at), LOW(what), HIGH(what))
#else
#define RELEASE_OF(name, data, interrupt, at, what, number)                       \
	PACKET(name, OF(PACKET3_RELEASE_MEM, 6),                                  \
	       RELEASED | EVENT(FLUSH_AND_INVALIDATE, 5),                         \
	       SELECT(data, interrupt), LOW(at), HIGH(at), LOW(what), HIGH(what), number)
#endif

#if MAJOR < 10
#define SELECT(data, interrupt) DATA_SEL((uint32_t)data) | INT_SEL(interrupt)
#elif MINOR == 0
#define SELECT(data, interrupt) \
	PACKET3_RELEASE_MEM_DATA_SEL((uint32_t)data) | PACKET3_RELEASE_MEM_INT_SEL(interrupt)
#else
#define SELECT(data, interrupt) \
	PACKET3_RELEASE_MEM__DATA_SEL(data) | PACKET3_RELEASE_MEM__INT_SEL(interrupt)
#endif

/* gfx12.5 has no bit by which what follows waits. */
#if MINOR == 0
#define WAITED (uint32_t)PACKET3_DMA_DATA_CP_SYNC
#else
#define WAITED 0
#endif

int main(void)
{
	PACKET("nop-1", PACKET3(PACKET3_NOP, 0x3fff));
	PACKET("nop-2", PACKET3(PACKET3_NOP, 0));
	PACKET("nop-16384", PACKET3(PACKET3_NOP, 0x3ffe));
	PACKET("write-3", OF(PACKET3_WRITE_DATA, 2 + 3), WRITE_TO, LOW(dword_at), HIGH(dword_at));
	RELEASE_OF("release-dword-event", 1, 2, dword_at, value, event);
	RELEASE_OF("release-dword", 1, 0, dword_at, value, 0);
	RELEASE_OF("release-qword-event", 2, 2, qword_at, qword, event);
	RELEASE_OF("release-clock", 3, 0, qword_at, 0, 0);
	RELEASE_OF("release-event", 0, 1, 0, 0, event);
	RELEASE_OF("release", 0, 0, 0, 0, 0);
#if MAJOR < 9
	PACKET("acquire", OF(PACKET3_ACQUIRE_MEM, 5),
	       PACKET3_TCL1_ACTION_ENA | PACKET3_TC_ACTION_ENA | PACKET3_SH_KCACHE_ACTION_ENA |
#if MAJOR == 8
		       PACKET3_TC_WB_ACTION_ENA |
#endif
		       PACKET3_SH_ICACHE_ACTION_ENA,
	       0xffffffff, 0xff, 0, 0, 10);
#elif MAJOR == 9
	PACKET("acquire", OF(PACKET3_ACQUIRE_MEM, 5),
	       PACKET3_ACQUIRE_MEM_CP_COHER_CNTL_SH_ICACHE_ACTION_ENA(1) |
		       PACKET3_ACQUIRE_MEM_CP_COHER_CNTL_SH_KCACHE_ACTION_ENA(1) |
		       PACKET3_ACQUIRE_MEM_CP_COHER_CNTL_TC_ACTION_ENA(1) |
		       PACKET3_ACQUIRE_MEM_CP_COHER_CNTL_TCL1_ACTION_ENA(1) |
		       PACKET3_ACQUIRE_MEM_CP_COHER_CNTL_TC_WB_ACTION_ENA(1),
	       0xffffffff, 0xffffff, 0, 0, 10);
#elif MINOR == 0
	PACKET("acquire", OF(PACKET3_ACQUIRE_MEM, 6), 0, 0xffffffff, 0xffffff, 0, 0, 10,
	       PACKET3_ACQUIRE_MEM_GCR_CNTL_GL2_INV(1) | PACKET3_ACQUIRE_MEM_GCR_CNTL_GL2_WB(1) |
		       PACKET3_ACQUIRE_MEM_GCR_CNTL_GLM_INV(1) |
		       PACKET3_ACQUIRE_MEM_GCR_CNTL_GLM_WB(1) |
		       PACKET3_ACQUIRE_MEM_GCR_CNTL_GL1_INV(1) |
		       PACKET3_ACQUIRE_MEM_GCR_CNTL_GLV_INV(1) |
		       PACKET3_ACQUIRE_MEM_GCR_CNTL_GLK_INV(1) |
		       PACKET3_ACQUIRE_MEM_GCR_CNTL_GLI_INV(1));
#else
	PACKET("acquire", OF(PACKET3_ACQUIRE_MEM, 6), 0, 0xffffffff, 0xffffff, 0, 0, 10,
	       PACKET3_ACQUIRE_MEM__GCR_CNTL__GL2_INV(1) |
		       PACKET3_ACQUIRE_MEM__GCR_CNTL__GL2_WB(1) |
		       PACKET3_ACQUIRE_MEM__GCR_CNTL__GLV_INV(1) |
		       PACKET3_ACQUIRE_MEM__GCR_CNTL__GLK_INV(1) |
		       PACKET3_ACQUIRE_MEM__GCR_CNTL__GLI_INV(1) |
		       PACKET3_ACQUIRE_MEM__GCR_CNTL__GL2_SCOPE(2));
#endif
	PACKET("shaders", OF(PACKET3_EVENT_WRITE, 0), EVENT(COMPUTE_PARTIAL_FLUSH, 4));
	PACKET("wait", OF(PACKET3_WAIT_REG_MEM, 5), WAIT_FOR, LOW(dword_at), HIGH(dword_at), value,
	       0xffffffff, 10);
	PACKET("copy-12345", OF(PACKET3_DMA_DATA, 5),
	       PACKET3_DMA_DATA_DST_SEL(3) | PACKET3_DMA_DATA_SRC_SEL(3u) |
		       WAITED,
	       LOW(from), HIGH(from), LOW(to), HIGH(to), 0x12345);
	PACKET("fill-1ffffc", OF(PACKET3_DMA_DATA, 5),
	       PACKET3_DMA_DATA_DST_SEL(3) | PACKET3_DMA_DATA_SRC_SEL(2u) |
		       WAITED,
	       value, 0, LOW(dword_at), HIGH(dword_at), 0x1ffffc);
	PACKET("buffer", OF(PACKET3_INDIRECT_BUFFER, 2), LOW(dword_at), HIGH(dword_at),
	       BUFFER(0x54321));
	return 0;
}
