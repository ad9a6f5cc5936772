/* Calls the kernel's function for shapes of GPUs that standard input names, each
 * by six numbers: version, SIMD units, SIMD units of a compute unit, shader
 * engines of a die, dies, local data in KiB. Prints the four sizes of each.
 *
 * The function's text is KERNEL_FORMULA, a file cut out of a kernel source; what
 * it takes from kernel headers is below.
 */
#include <stdint.h>
#include <stdio.h>

typedef uint32_t u32;

#define PAGE_SIZE 4096
#define AMDGPU_GPU_PAGE_SIZE 4096
#define ALIGN(bytes, to) (((bytes) + (to) - 1) / (to) * (to))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define NUM_XCC(mask) __builtin_popcount(mask)
#define WARN_ON(condition) ((void)(condition))

struct kfd_node_properties {
	u32 simd_count, simd_per_cu, array_count, simd_arrays_per_engine;
	u32 gfx_target_version, lds_size_in_kb;
	u32 ctl_stack_size, debug_memory_size, cwsr_size, eop_buffer_size;
};

struct kfd_node {
	u32 xcc_mask;
};

struct kfd_topology_device {
	struct kfd_node_properties node_props;
	struct kfd_node *gpu;
};

#include KERNEL_FORMULA

int main(void)
{
	u32 version, simds, per_unit, engines, dies, local;

	while (scanf("%u %u %u %u %u %u", &version, &simds, &per_unit, &engines, &dies,
		     &local) == 6) {
		struct kfd_node node = { .xcc_mask = (1u << dies) - 1 };
		struct kfd_topology_device device = {
			.node_props = {
				.simd_count = simds,
				.simd_per_cu = per_unit,
				.array_count = engines * 2,
				.simd_arrays_per_engine = 2,
				.gfx_target_version = version,
				.lds_size_in_kb = local,
			},
			.gpu = &node,
		};

		kfd_queue_ctx_save_restore_size(&device);
		printf("%u %u %u %u\n", device.node_props.ctl_stack_size,
		       device.node_props.cwsr_size, device.node_props.debug_memory_size,
		       device.node_props.eop_buffer_size);
	}
	return 0;
}
