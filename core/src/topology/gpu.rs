//! What follows from a GPU node's file: its version, its names, its sizes.

use super::access::DeviceInfo;
use super::settings::{MajorChange, Settings};
use super::{GfxVersion, Name, Node, products};
use crate::error::{Error, Object, Operation, Status};

/// `SVMAPISupported` in `HSA_CAPABILITY`.
const CAPABILITY_SVM_API: u32 = 1 << 27;

/// The last major version whose chips the built-in table names.
const LAST_NAMED_MAJOR: u8 = 10;

/// Bytes of scalar registers of a compute unit, on every chip.
const SGPR_SIZE_PER_CU: u32 = 0x4000;

/// The product name where the table has none.
const GENERIC_PRODUCT: &str = "AMD Radeon Graphics";

impl Node {
    /// Adds to a GPU node what its file does not say; `node_id` is its public id.
    ///
    /// # Errors
    /// Status ERROR for an override that does not parse or is refused.
    pub(super) fn complete_gpu(
        &mut self,
        node_id: u32,
        info: Option<DeviceInfo>,
        settings: &Settings<'_>,
    ) -> Result<(), Error> {
        if let Some(info) = info {
            if info.family != 0 {
                self.family_id = info.family;
            }
            self.integrated = info.integrated;
            self.wall_clock_khz = info.counter_khz;
            self.fabric = info.fabric;
        }
        if !settings.svm_api {
            self.capability &= !CAPABILITY_SVM_API;
        }
        if self.simd_count == 0 {
            return Ok(());
        }
        self.num_xcc = self.num_xcc.max(1);
        self.identify();
        self.sgpr_size_per_cu = SGPR_SIZE_PER_CU;
        self.vgpr_size_per_cu = vgpr_size_per_cu(self.gfx_version);
        self.gfx_override = accepted_override(node_id, self.gfx_version, settings)?;
        if settings.marketing_names {
            let revision = info.map(|info| info.pci_revision);
            let product = products::product(self.device_id, revision);
            self.marketing_name = Name::from(product.unwrap_or(GENERIC_PRODUCT));
        }
        Ok(())
    }

    /// Finds the version and the chip's name. A chip that neither the table nor
    /// the kernel knows keeps version 0.0.0 and no name, and is listed all the
    /// same.
    fn identify(&mut self) {
        if self.gfx_version.major <= LAST_NAMED_MAJOR {
            if let Some(chip) = products::chip(self.device_id) {
                self.gfx_version = chip.version;
                self.amd_name = Name::from(chip.name);
                return;
            }
        }
        if !self.gfx_version.is_unknown() {
            self.amd_name = self.gfx_version.generic_name();
        }
    }
}

/// Bytes of vector registers of a compute unit.
const fn vgpr_size_per_cu(version: GfxVersion) -> u32 {
    match (version.major, version.minor, version.stepping) {
        (9, 0, 8 | 10) | (9, 4, _) | (9, 5, 0) => 0x80000,
        (11 | 12, 0, 0 | 1) => 0x60000,
        _ => 0x40000,
    }
}

/// The override for the node, if there is one and it may hold.
fn accepted_override(
    node_id: u32,
    real: GfxVersion,
    settings: &Settings<'_>,
) -> Result<Option<GfxVersion>, Error> {
    let own = settings.node_gfx_overrides.iter().find(|&&(node, _)| node == node_id);
    let Some(text) = own.map(|&(_, text)| text).or(settings.gfx_override) else {
        return Ok(None);
    };
    let refused = Error::library(Status::ERROR, Operation::OverrideGfx, Object::Node(node_id));
    let version = GfxVersion::from_override(text).ok_or(refused)?;
    let changes_major = !real.is_unknown() && real.major != version.major;
    if changes_major && settings.major_change == MajorChange::Refuse {
        return Err(refused);
    }
    Ok(Some(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(major: u8, minor: u8, stepping: u8) -> GfxVersion {
        GfxVersion { major, minor, stepping }
    }

    fn gpu(device_id: u32, target_version: u32) -> Node {
        Node {
            gpu_id: 1,
            simd_count: 4,
            device_id,
            gfx_version: GfxVersion::from_target_version(target_version),
            ..Node::default()
        }
    }

    fn completed(mut node: Node, settings: &Settings<'_>) -> Result<Node, Error> {
        node.complete_gpu(3, None, settings)?;
        Ok(node)
    }

    #[test]
    fn names_from_table_version_or_nowhere() {
        let settings = Settings::KERNEL;
        for (device, target, name, engine) in [
            (0x740f, 90010, "Aldebaran", version(9, 0, 10)),
            (0x740f, 0, "Aldebaran", version(9, 0, 10)),
            (0x74a1, 90402, "GFX090402", version(9, 4, 2)),
            (0x744c, 110000, "GFX0b0000", version(11, 0, 0)),
            // A new chip with an old device id is what the kernel says it is.
            (0x740f, 110000, "GFX0b0000", version(11, 0, 0)),
            (0xfffe, 0, "", version(0, 0, 0)),
        ] {
            let node = completed(gpu(device, target), &settings).unwrap();
            assert_eq!(node.amd_name.as_bytes(), name.as_bytes());
            assert_eq!(node.gfx_version, engine);
        }
    }

    #[test]
    fn register_files() {
        for (target, bytes) in [
            (90006, 0x40000),
            (90008, 0x80000),
            (90010, 0x80000),
            (90402, 0x80000),
            (90500, 0x80000),
            (100300, 0x40000),
            (110000, 0x60000),
            (110001, 0x60000),
            (110003, 0x40000),
            (120001, 0x60000),
        ] {
            let node = completed(gpu(0xffff, target), &Settings::KERNEL).unwrap();
            assert_eq!(node.vgpr_size_per_cu, bytes, "{target}");
            assert_eq!((node.sgpr_size_per_cu, node.num_xcc), (0x4000, 1));
        }
    }

    #[test]
    fn an_override_within_the_major_version_holds() {
        let settings = Settings { gfx_override: Some(b"9.0.6"), ..Settings::KERNEL };
        let node = completed(gpu(0x740f, 90010), &settings).unwrap();
        assert_eq!(node.gfx_version, version(9, 0, 10));
        assert_eq!(node.gfx_override, Some(version(9, 0, 6)));
        assert_eq!(node.effective_gfx_version(), version(9, 0, 6));
    }

    #[test]
    fn an_override_of_the_major_version_is_refused_or_allowed() {
        let settings = Settings { gfx_override: Some(b"10.3.0"), ..Settings::KERNEL };
        let error = completed(gpu(0x740f, 90010), &settings).unwrap_err();
        assert_eq!(
            (error.status, error.operation, error.object),
            (Status::ERROR, Operation::OverrideGfx, Object::Node(3))
        );
        let allowing = Settings { major_change: MajorChange::Allow, ..settings };
        let node = completed(gpu(0x740f, 90010), &allowing).unwrap();
        assert_eq!(node.effective_gfx_version(), version(10, 3, 0));
        // Nothing is known to change where nothing is known.
        let node = completed(gpu(0xfffe, 0), &settings).unwrap();
        assert_eq!(node.effective_gfx_version(), version(10, 3, 0));
    }

    #[test]
    fn a_node_has_its_own_override() {
        let own: &[(u32, &[u8])] = &[(2, b"9.0.8"), (3, b"9.0.0")];
        let settings = Settings {
            gfx_override: Some(b"nonsense"),
            node_gfx_overrides: own,
            ..Settings::KERNEL
        };
        let node = completed(gpu(0x740f, 90010), &settings).unwrap();
        assert_eq!(node.gfx_override, Some(version(9, 0, 0)));
        let settings = Settings { node_gfx_overrides: &own[..1], ..settings };
        assert!(completed(gpu(0x740f, 90010), &settings).is_err());
    }

    #[test]
    fn what_the_driver_says() {
        let mut node = Node { capability: u32::MAX, family_id: 1, ..gpu(0x744c, 110000) };
        let info = DeviceInfo {
            family: 145,
            integrated: true,
            counter_khz: 100_000,
            pci_revision: 0xc8,
            fabric: true,
        };
        let settings = Settings { svm_api: false, ..Settings::KERNEL };
        node.complete_gpu(0, Some(info), &settings).unwrap();
        assert_eq!((node.family_id, node.wall_clock_khz), (145, 100_000));
        assert!(node.integrated && node.fabric);
        assert_eq!(node.marketing_name.as_bytes(), b"AMD Radeon RX 7900 XTX");
        assert_eq!(node.capability, !CAPABILITY_SVM_API);
    }

    #[test]
    fn product_names_can_be_left_out() {
        let generic = completed(gpu(0xfffe, 110000), &Settings::KERNEL).unwrap();
        assert_eq!(generic.marketing_name.as_bytes(), GENERIC_PRODUCT.as_bytes());
        let settings = Settings { marketing_names: false, ..Settings::KERNEL };
        assert!(completed(gpu(0x74a1, 90402), &settings).unwrap().marketing_name.is_empty());
    }
}
