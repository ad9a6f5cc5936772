/* The inputs of all cases, and how a packet is printed. */
#include <stdint.h>
#include <stdio.h>

#define LOW(value) ((uint32_t)(value))
#define HIGH(value) ((uint32_t)((uint64_t)(value) >> 32))

static const uint64_t from = 0x123456789abcdef1, to = 0xfedcba9876543217;
static const uint64_t dword_at = 0x00007fedcba98764, qword_at = 0x0000812345678af8;
static const uint64_t qword = 0x89abcdef01234567;
static const uint32_t value = 0xdeadbeef, event = 0x0abcdef1;

#define PACKET(name, ...)                                                        \
	do {                                                                     \
		const uint32_t dwords[] = { __VA_ARGS__ };                       \
		printf("%s %s", GENERATION, name);                               \
		for (unsigned at = 0; at < sizeof dwords / sizeof *dwords; at++) \
			printf(" %08x", dwords[at]);                             \
		printf("\n");                                                    \
	} while (0)
