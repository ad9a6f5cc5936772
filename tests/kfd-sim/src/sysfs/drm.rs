//! `/dev/dri` and `/sys/class/drm`, as far as a compute library looks at them.

use alloc::format;

use super::{Entry, Folder};
use crate::topology::Gpu;

/// Puts a render node and its device. The first partition of a device is the
/// PCI device; the others hang on the platform bus (amdgpu_xcp_drv.c).
pub(super) fn put_render_node(root: &mut Folder, gpu: &Gpu) {
    let minor = gpu.render_minor();
    let properties = &gpu.properties;
    let (bus, partition) = (properties.location_id >> 8, properties.location_id & 7);
    let device = if partition == 0 {
        format!(
            "/sys/devices/pci{:04x}:{bus:02x}/{:04x}:{bus:02x}:00.0",
            properties.domain, properties.domain
        )
    } else {
        format!("/sys/devices/platform/amdgpu_xcp_{minor}")
    };
    root.put(&format!("/dev/dri/renderD{minor}"), Entry::Device);
    root.put_bytes(
        &format!("{device}/drm/renderD{minor}/dev"),
        format!("226:{minor}\n").into_bytes(),
    );
    root.put_link(&format!("{device}/drm/renderD{minor}/device"), &device);
    root.put_link(
        &format!("/sys/class/drm/renderD{minor}"),
        &format!("{device}/drm/renderD{minor}"),
    );
    if partition != 0 {
        return;
    }
    for (name, value, digits) in [
        ("vendor", properties.vendor_id, 4),
        ("device", properties.device_id, 4),
        ("revision", gpu.render.pci_revision, 2),
        ("subsystem_vendor", gpu.render.subsystem_vendor, 4),
        ("subsystem_device", gpu.render.subsystem_device, 4),
    ] {
        root.put_bytes(&format!("{device}/{name}"), format!("0x{value:0digits$x}\n").into_bytes());
    }
}

/// Takes a render node away with its GPU.
pub(crate) fn remove_render_node(root: &mut Folder, minor: u32) {
    root.remove(&format!("/dev/dri/renderD{minor}"));
    root.remove(&format!("/sys/class/drm/renderD{minor}"));
}
