//! What GPUs are called: chips by PCI device id, products by device id and
//! revision.
//!
//! Chips are those up to gfx10 that callers of the reference library know by
//! name (the facts folder, `device-names.json`); products are named as their
//! vendor names them, for GPUs that KFD drives. Both tables ascend by their keys.
//! No name file is ever opened.

use super::GfxVersion;

/// A chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chip {
    pub(super) version: GfxVersion,
    pub(super) name: &'static str,
}

/// The chip with this PCI device id, if it is one of the table's.
pub(super) fn chip(device_id: u32) -> Option<&'static Chip> {
    let device = u16::try_from(device_id).ok()?;
    let place = DEVICES.binary_search_by_key(&device, |&(device, _)| device).ok()?;
    CHIPS.get(usize::from(DEVICES.get(place)?.1))
}

/// The product with this PCI device id and revision. Where the revision is not
/// known, or not in the table, only a name that all revisions share will do.
pub(super) fn product(device_id: u32, revision: Option<u32>) -> Option<&'static str> {
    let device = u16::try_from(device_id).ok()?;
    let first = PRODUCTS.partition_point(|&(entry, ..)| entry < device);
    let revisions = || PRODUCTS.iter().skip(first).take_while(move |&&(entry, ..)| entry == device);
    if let Some(revision) = revision {
        let exact = revisions().find(|&&(_, entry, _)| u32::from(entry) == revision);
        if let Some(&(.., name)) = exact {
            return Some(name);
        }
    }
    let &(.., name) = revisions().next()?;
    revisions().all(|&(.., other)| other == name).then_some(name)
}

const fn chip_entry(major: u8, minor: u8, stepping: u8, name: &'static str) -> Chip {
    Chip { version: GfxVersion { major, minor, stepping }, name }
}

static CHIPS: [Chip; 27] = [
    chip_entry(7, 0, 0, "Spectre"),
    chip_entry(7, 0, 0, "Spooky"),
    chip_entry(7, 0, 1, "Hawaii"),
    chip_entry(8, 0, 1, "Carrizo"),
    chip_entry(8, 0, 2, "Tonga"),
    chip_entry(8, 0, 3, "Fiji"),
    chip_entry(8, 0, 3, "Polaris10"),
    chip_entry(8, 0, 3, "Polaris11"),
    chip_entry(8, 0, 3, "Polaris12"),
    chip_entry(8, 0, 3, "VegaM"),
    chip_entry(9, 0, 0, "Vega10"),
    chip_entry(9, 0, 4, "Vega12"),
    chip_entry(9, 0, 2, "Raven"),
    chip_entry(9, 0, 6, "Vega20"),
    chip_entry(9, 0, 8, "Arcturus"),
    chip_entry(9, 0, 10, "Aldebaran"),
    chip_entry(9, 0, 12, "Renoir"),
    chip_entry(10, 1, 0, "Navi10"),
    chip_entry(10, 1, 3, "cyan_skillfish"),
    chip_entry(10, 1, 2, "Navi14"),
    chip_entry(10, 1, 1, "Navi12"),
    chip_entry(10, 3, 0, "SIENNA_CICHLID"),
    chip_entry(10, 3, 1, "NAVY_FLOUNDER"),
    chip_entry(10, 3, 2, "DIMGREY_CAVEFISH"),
    chip_entry(10, 3, 3, "VanGogh"),
    chip_entry(10, 3, 4, "BEIGE_GOBY"),
    chip_entry(10, 3, 5, "YELLOW_CARP"),
];

/// (PCI device id, place in `CHIPS`)
#[rustfmt::skip]
static DEVICES: [(u16, u8); 180] = [
    (0x1304, 0), (0x1305, 0), (0x1306, 0), (0x1307, 0), (0x1309, 0), (0x130a, 0),
    (0x130b, 0), (0x130c, 0), (0x130d, 0), (0x130e, 0), (0x130f, 0), (0x1310, 0),
    (0x1311, 0), (0x1312, 1), (0x1313, 0), (0x1315, 0), (0x1316, 1), (0x1317, 1),
    (0x1318, 0), (0x131b, 0), (0x131c, 0), (0x131d, 0), (0x13f9, 18), (0x13fa, 18),
    (0x13fb, 18), (0x13fc, 18), (0x13fe, 18), (0x143f, 18), (0x15d8, 12), (0x15dd, 12),
    (0x15e7, 16), (0x1636, 16), (0x1638, 16), (0x163f, 24), (0x164c, 16), (0x164d, 26),
    (0x1681, 26), (0x66a0, 13), (0x66a1, 13), (0x66a2, 13), (0x66a3, 13), (0x66a4, 13),
    (0x66a7, 13), (0x66af, 13), (0x67a0, 2), (0x67a1, 2), (0x67a2, 2), (0x67a8, 2),
    (0x67a9, 2), (0x67aa, 2), (0x67b0, 2), (0x67b1, 2), (0x67b8, 2), (0x67b9, 2),
    (0x67ba, 2), (0x67be, 2), (0x67c0, 6), (0x67c1, 6), (0x67c2, 6), (0x67c4, 6),
    (0x67c7, 6), (0x67c8, 6), (0x67c9, 6), (0x67ca, 6), (0x67cc, 6), (0x67cf, 6),
    (0x67d0, 6), (0x67df, 6), (0x67e0, 7), (0x67e1, 7), (0x67e3, 7), (0x67e7, 7),
    (0x67e8, 7), (0x67e9, 7), (0x67eb, 7), (0x67ef, 7), (0x67ff, 7), (0x6860, 10),
    (0x6861, 10), (0x6862, 10), (0x6863, 10), (0x6864, 10), (0x6867, 10), (0x6868, 10),
    (0x6869, 10), (0x686a, 10), (0x686b, 10), (0x686c, 10), (0x686d, 10), (0x686e, 10),
    (0x687f, 10), (0x6920, 4), (0x6921, 4), (0x6928, 4), (0x6929, 4), (0x692b, 4),
    (0x692f, 4), (0x6930, 4), (0x6938, 4), (0x6939, 4), (0x694c, 9), (0x694e, 9),
    (0x694f, 9), (0x6980, 8), (0x6981, 8), (0x6985, 8), (0x6986, 8), (0x6987, 8),
    (0x6995, 8), (0x6997, 8), (0x699f, 8), (0x69a0, 11), (0x69a1, 11), (0x69a2, 11),
    (0x69a3, 11), (0x69af, 11), (0x6fdf, 6), (0x7300, 5), (0x730f, 5), (0x7310, 17),
    (0x7312, 17), (0x7318, 17), (0x731a, 17), (0x731e, 17), (0x731f, 17), (0x7340, 19),
    (0x7341, 19), (0x7347, 19), (0x7360, 20), (0x7362, 20), (0x7388, 14), (0x738c, 14),
    (0x738e, 14), (0x7390, 14), (0x73a0, 21), (0x73a1, 21), (0x73a2, 21), (0x73a3, 21),
    (0x73a5, 21), (0x73a8, 21), (0x73a9, 21), (0x73ab, 21), (0x73ac, 21), (0x73ad, 21),
    (0x73ae, 21), (0x73bf, 21), (0x73c0, 22), (0x73c1, 22), (0x73c3, 22), (0x73da, 22),
    (0x73db, 22), (0x73dc, 22), (0x73dd, 22), (0x73de, 22), (0x73df, 22), (0x73e0, 23),
    (0x73e1, 23), (0x73e2, 23), (0x73e8, 23), (0x73e9, 23), (0x73ea, 23), (0x73eb, 23),
    (0x73ec, 23), (0x73ed, 23), (0x73ef, 23), (0x73ff, 23), (0x7408, 15), (0x740c, 15),
    (0x740f, 15), (0x7410, 15), (0x7420, 25), (0x7421, 25), (0x7422, 25), (0x7423, 25),
    (0x743f, 25), (0x9870, 3), (0x9874, 3), (0x9875, 3), (0x9876, 3), (0x9877, 3),
];

/// (PCI device id, revision, name)
#[rustfmt::skip]
static PRODUCTS: [(u16, u8, &str); 233] = [
    (0x150e, 0xc1, "AMD Radeon 890M Graphics"),
    (0x1586, 0xc1, "Radeon 8060S Graphics"),
    (0x1586, 0xc2, "Radeon 8050S Graphics"),
    (0x1586, 0xc4, "Radeon 8050S Graphics"),
    (0x1586, 0xd1, "Radeon 8060S Graphics"),
    (0x1586, 0xd2, "Radeon 8050S Graphics"),
    (0x1586, 0xd4, "Radeon 8050S Graphics"),
    (0x1586, 0xd5, "Radeon 8040S Graphics"),
    (0x163f, 0xae, "AMD Custom GPU 0405"),
    (0x66a1, 0x02, "AMD Instinct MI60 / MI50"),
    (0x66a1, 0x06, "AMD Radeon Pro VII"),
    (0x66af, 0xc1, "AMD Radeon VII"),
    (0x67a0, 0x00, "AMD Radeon FirePro W9100"),
    (0x67a1, 0x00, "AMD Radeon FirePro W8100"),
    (0x67b0, 0x00, "AMD Radeon R9 200 Series"),
    (0x67b0, 0x80, "AMD Radeon R9 390 Series"),
    (0x67b1, 0x00, "AMD Radeon R9 200 Series"),
    (0x67b1, 0x80, "AMD Radeon R9 390 Series"),
    (0x67b9, 0x00, "AMD Radeon R9 200 Series"),
    (0x67c0, 0x00, "AMD Radeon Pro WX 7100 Graphics"),
    (0x67c0, 0x80, "AMD Radeon E9550"),
    (0x67c2, 0x01, "AMD Radeon Pro V7350x2"),
    (0x67c2, 0x02, "AMD Radeon Pro V7300X"),
    (0x67c4, 0x00, "AMD Radeon Pro WX 7100 Graphics"),
    (0x67c4, 0x80, "AMD Radeon E9560 / E9565 Graphics"),
    (0x67c7, 0x00, "AMD Radeon Pro WX 5100 Graphics"),
    (0x67c7, 0x80, "AMD Radeon E9390 Graphics"),
    (0x67d0, 0x01, "AMD Radeon Pro V7350x2"),
    (0x67d0, 0x02, "AMD Radeon Pro V7300X"),
    (0x67df, 0xc0, "AMD Radeon Pro 580X"),
    (0x67df, 0xc1, "AMD Radeon RX 580 Series"),
    (0x67df, 0xc2, "AMD Radeon RX 570 Series"),
    (0x67df, 0xc3, "AMD Radeon RX 580 Series"),
    (0x67df, 0xc4, "AMD Radeon RX 480 Graphics"),
    (0x67df, 0xc5, "AMD Radeon RX 470 Graphics"),
    (0x67df, 0xc6, "AMD Radeon RX 570 Series"),
    (0x67df, 0xc7, "AMD Radeon RX 480 Graphics"),
    (0x67df, 0xcf, "AMD Radeon RX 470 Graphics"),
    (0x67df, 0xd7, "AMD Radeon RX 470 Graphics"),
    (0x67df, 0xe0, "AMD Radeon RX 470 Series"),
    (0x67df, 0xe1, "AMD Radeon RX 590 Series"),
    (0x67df, 0xe3, "AMD Radeon RX Series"),
    (0x67df, 0xe7, "AMD Radeon RX 580 Series"),
    (0x67df, 0xeb, "AMD Radeon Pro 580X"),
    (0x67df, 0xef, "AMD Radeon RX 570 Series"),
    (0x67df, 0xf7, "AMD Radeon RX P30PH"),
    (0x67df, 0xff, "AMD Radeon RX 470 Series"),
    (0x67e0, 0x00, "AMD Radeon Pro WX Series"),
    (0x67e3, 0x00, "AMD Radeon Pro WX 4100"),
    (0x67e8, 0x00, "AMD Radeon Pro WX Series"),
    (0x67e8, 0x01, "AMD Radeon Pro WX Series"),
    (0x67e8, 0x80, "AMD Radeon E9260 Graphics"),
    (0x67eb, 0x00, "AMD Radeon Pro V5300X"),
    (0x67ef, 0xc0, "AMD Radeon RX Graphics"),
    (0x67ef, 0xc1, "AMD Radeon RX 460 Graphics"),
    (0x67ef, 0xc2, "AMD Radeon Pro Series"),
    (0x67ef, 0xc3, "AMD Radeon RX Series"),
    (0x67ef, 0xc5, "AMD Radeon RX 460 Graphics"),
    (0x67ef, 0xc7, "AMD Radeon RX Graphics"),
    (0x67ef, 0xcf, "AMD Radeon RX 460 Graphics"),
    (0x67ef, 0xe0, "AMD Radeon RX 560 Series"),
    (0x67ef, 0xe1, "AMD Radeon RX Series"),
    (0x67ef, 0xe2, "AMD Radeon RX 560X"),
    (0x67ef, 0xe3, "AMD Radeon RX Series"),
    (0x67ef, 0xe5, "AMD Radeon RX 560 Series"),
    (0x67ef, 0xe7, "AMD Radeon RX 560 Series"),
    (0x67ef, 0xef, "AMD Radeon 550 Series"),
    (0x67ef, 0xff, "AMD Radeon RX 460 Graphics"),
    (0x67ff, 0xc0, "AMD Radeon Pro 465"),
    (0x67ff, 0xc1, "AMD Radeon RX 560 Series"),
    (0x67ff, 0xcf, "AMD Radeon RX 560 Series"),
    (0x67ff, 0xef, "AMD Radeon RX 560 Series"),
    (0x67ff, 0xff, "AMD Radeon RX 550 Series"),
    (0x6860, 0x00, "AMD Radeon Instinct MI25"),
    (0x6860, 0x01, "AMD Radeon Instinct MI25"),
    (0x6860, 0x02, "AMD Radeon Instinct MI25"),
    (0x6860, 0x03, "AMD Radeon Pro V340"),
    (0x6860, 0x04, "AMD Radeon Instinct MI25x2"),
    (0x6860, 0x07, "AMD Radeon Pro V320"),
    (0x6861, 0x00, "AMD Radeon Pro WX 9100"),
    (0x6862, 0x00, "AMD Radeon Pro SSG"),
    (0x6863, 0x00, "AMD Radeon Vega Frontier Edition"),
    (0x6864, 0x03, "AMD Radeon Pro V340"),
    (0x6864, 0x04, "AMD Radeon Instinct MI25x2"),
    (0x6864, 0x05, "AMD Radeon Pro V340"),
    (0x6868, 0x00, "AMD Radeon Pro WX 8200"),
    (0x686c, 0x00, "AMD Radeon Instinct MI25 MxGPU"),
    (0x686c, 0x01, "AMD Radeon Instinct MI25 MxGPU"),
    (0x686c, 0x02, "AMD Radeon Instinct MI25 MxGPU"),
    (0x686c, 0x03, "AMD Radeon Pro V340 MxGPU"),
    (0x686c, 0x04, "AMD Radeon Instinct MI25x2 MxGPU"),
    (0x686c, 0x05, "AMD Radeon Pro V340L MxGPU"),
    (0x686c, 0x06, "AMD Radeon Instinct MI25 MxGPU"),
    (0x687f, 0x01, "AMD Radeon RX Vega"),
    (0x687f, 0xc0, "AMD Radeon RX Vega"),
    (0x687f, 0xc1, "AMD Radeon RX Vega"),
    (0x687f, 0xc3, "AMD Radeon RX Vega"),
    (0x687f, 0xc7, "AMD Radeon RX Vega"),
    (0x6920, 0x00, "AMD Radeon R9 M395X"),
    (0x6920, 0x01, "AMD Radeon R9 M390X"),
    (0x6921, 0x00, "AMD Radeon R9 M390X"),
    (0x6929, 0x00, "AMD FirePro S7150"),
    (0x6929, 0x01, "AMD FirePro S7100X"),
    (0x692b, 0x00, "AMD FirePro W7100"),
    (0x6938, 0x00, "AMD Radeon R9 200 Series"),
    (0x6938, 0xf0, "AMD Radeon R9 200 Series"),
    (0x6938, 0xf1, "AMD Radeon R9 380 Series"),
    (0x6939, 0x00, "AMD Radeon R9 200 Series"),
    (0x6939, 0xf0, "AMD Radeon R9 200 Series"),
    (0x6939, 0xf1, "AMD Radeon R9 380 Series"),
    (0x694c, 0xc0, "AMD Radeon RX Vega M GH Graphics"),
    (0x694e, 0xc0, "AMD Radeon RX Vega M GL Graphics"),
    (0x6980, 0x00, "AMD Radeon Pro WX 3100"),
    (0x6981, 0x00, "AMD Radeon Pro WX 3200 Series"),
    (0x6981, 0x01, "AMD Radeon Pro WX 3200 Series"),
    (0x6981, 0x10, "AMD Radeon Pro WX 3200 Series"),
    (0x6985, 0x00, "AMD Radeon Pro WX 3100"),
    (0x6986, 0x00, "AMD Radeon Pro WX 2100"),
    (0x6987, 0x80, "AMD Embedded Radeon E9171"),
    (0x6987, 0xc0, "AMD Radeon 550X Series"),
    (0x6987, 0xc1, "AMD Radeon RX 640"),
    (0x6987, 0xc3, "AMD Radeon 540X Series"),
    (0x6987, 0xc7, "AMD Radeon 540"),
    (0x6995, 0x00, "AMD Radeon Pro WX 2100"),
    (0x6997, 0x00, "AMD Radeon Pro WX 2100"),
    (0x699f, 0x81, "AMD Embedded Radeon E9170 Series"),
    (0x699f, 0xc0, "AMD Radeon 500 Series"),
    (0x699f, 0xc1, "AMD Radeon 540 Series"),
    (0x699f, 0xc3, "AMD Radeon 500 Series"),
    (0x699f, 0xc7, "AMD Radeon RX 550 / 550 Series"),
    (0x699f, 0xc9, "AMD Radeon 540"),
    (0x6fdf, 0xe7, "AMD Radeon RX 590 GME"),
    (0x6fdf, 0xef, "AMD Radeon RX 580 2048SP"),
    (0x7300, 0xc1, "AMD FirePro S9300 x2"),
    (0x7300, 0xc8, "AMD Radeon R9 Fury Series"),
    (0x7300, 0xc9, "AMD Radeon Pro Duo"),
    (0x7300, 0xca, "AMD Radeon R9 Fury Series"),
    (0x7300, 0xcb, "AMD Radeon R9 Fury Series"),
    (0x7312, 0x00, "AMD Radeon Pro W5700"),
    (0x731e, 0xc6, "AMD Radeon RX 5700XTB"),
    (0x731e, 0xc7, "AMD Radeon RX 5700B"),
    (0x731f, 0xc0, "AMD Radeon RX 5700 XT 50th Anniversary"),
    (0x731f, 0xc1, "AMD Radeon RX 5700 XT"),
    (0x731f, 0xc2, "AMD Radeon RX 5600M"),
    (0x731f, 0xc3, "AMD Radeon RX 5700M"),
    (0x731f, 0xc4, "AMD Radeon RX 5700"),
    (0x731f, 0xc5, "AMD Radeon RX 5700 XT"),
    (0x731f, 0xca, "AMD Radeon RX 5600 XT"),
    (0x731f, 0xcb, "AMD Radeon RX 5600 OEM"),
    (0x7340, 0xc1, "AMD Radeon RX 5500M"),
    (0x7340, 0xc3, "AMD Radeon RX 5300M"),
    (0x7340, 0xc5, "AMD Radeon RX 5500 XT"),
    (0x7340, 0xc7, "AMD Radeon RX 5500"),
    (0x7340, 0xc9, "AMD Radeon RX 5500XTB"),
    (0x7340, 0xcf, "AMD Radeon RX 5300"),
    (0x7341, 0x00, "AMD Radeon Pro W5500"),
    (0x7347, 0x00, "AMD Radeon Pro W5500M"),
    (0x7360, 0x41, "AMD Radeon Pro 5600M"),
    (0x7360, 0xc3, "AMD Radeon Pro V520"),
    (0x738c, 0x01, "AMD Instinct MI100"),
    (0x73a3, 0x00, "AMD Radeon Pro W6800"),
    (0x73a5, 0xc0, "AMD Radeon RX 6950 XT"),
    (0x73bf, 0xc0, "AMD Radeon RX 6900 XT"),
    (0x73bf, 0xc1, "AMD Radeon RX 6800 XT"),
    (0x73bf, 0xc3, "AMD Radeon RX 6800"),
    (0x73df, 0xc0, "AMD Radeon RX 6750 XT"),
    (0x73df, 0xc1, "AMD Radeon RX 6700 XT"),
    (0x73df, 0xc2, "AMD Radeon RX 6800M"),
    (0x73df, 0xc3, "AMD Radeon RX 6800M"),
    (0x73df, 0xc5, "AMD Radeon RX 6700 XT"),
    (0x73df, 0xcf, "AMD Radeon RX 6700M"),
    (0x73df, 0xd5, "AMD Radeon RX 6750 GRE 12GB"),
    (0x73df, 0xd7, "AMD TDC-235"),
    (0x73df, 0xdf, "AMD Radeon RX 6700"),
    (0x73df, 0xe5, "AMD Radeon RX 6750 GRE 12GB"),
    (0x73e1, 0x00, "AMD Radeon Pro W6600M"),
    (0x73ef, 0xc0, "AMD Radeon RX 6800S"),
    (0x73ef, 0xc1, "AMD Radeon RX 6650 XT"),
    (0x73ef, 0xc2, "AMD Radeon RX 6700S"),
    (0x73ef, 0xc3, "AMD Radeon RX 6650M"),
    (0x73ef, 0xc4, "AMD Radeon RX 6650M XT"),
    (0x73ff, 0xc1, "AMD Radeon RX 6600 XT"),
    (0x73ff, 0xc3, "AMD Radeon RX 6600M"),
    (0x73ff, 0xc7, "AMD Radeon RX 6600"),
    (0x73ff, 0xcb, "AMD Radeon RX 6600S"),
    (0x73ff, 0xdf, "AMD Radeon RX 6750 GRE 10GB"),
    (0x7408, 0x00, "AMD Instinct MI250X"),
    (0x740c, 0x01, "AMD Instinct MI250X / MI250"),
    (0x740f, 0x02, "AMD Instinct MI210"),
    (0x7421, 0x00, "AMD Radeon Pro W6500M"),
    (0x7422, 0x00, "AMD Radeon Pro W6400"),
    (0x7423, 0x00, "AMD Radeon Pro W6300M"),
    (0x7423, 0x01, "AMD Radeon Pro W6300"),
    (0x743f, 0xc1, "AMD Radeon RX 6500 XT"),
    (0x743f, 0xc3, "AMD Radeon RX 6500"),
    (0x743f, 0xc7, "AMD Radeon RX 6400"),
    (0x743f, 0xcf, "AMD Radeon RX 6300M"),
    (0x7448, 0x00, "AMD Radeon Pro W7900"),
    (0x7449, 0x00, "AMD Radeon Pro W7800 48GB"),
    (0x744a, 0x00, "AMD Radeon Pro W7900 Dual Slot"),
    (0x744c, 0xc8, "AMD Radeon RX 7900 XTX"),
    (0x744c, 0xcc, "AMD Radeon RX 7900 XT"),
    (0x744c, 0xce, "AMD Radeon RX 7900 GRE"),
    (0x744c, 0xcf, "AMD Radeon RX 7900M"),
    (0x745e, 0xcc, "AMD Radeon Pro W7800"),
    (0x7460, 0x00, "AMD Radeon Pro V710"),
    (0x7461, 0x00, "AMD Radeon Pro V710 MxGPU"),
    (0x7470, 0x00, "AMD Radeon Pro W7700"),
    (0x747e, 0xc8, "AMD Radeon RX 7800 XT"),
    (0x747e, 0xd8, "AMD Radeon RX 7800M"),
    (0x747e, 0xff, "AMD Radeon RX 7700 XT"),
    (0x7480, 0x00, "AMD Radeon Pro W7600"),
    (0x7480, 0xc0, "AMD Radeon RX 7600 XT"),
    (0x7480, 0xc1, "AMD Radeon RX 7700S"),
    (0x7480, 0xc2, "AMD Radeon RX 7650 GRE"),
    (0x7480, 0xc3, "AMD Radeon RX 7600S"),
    (0x7480, 0xc7, "AMD Radeon RX 7600M XT"),
    (0x7480, 0xcf, "AMD Radeon RX 7600"),
    (0x7483, 0xcf, "AMD Radeon RX 7600M"),
    (0x7489, 0x00, "AMD Radeon Pro W7500"),
    (0x7499, 0x00, "AMD Radeon Pro W7400"),
    (0x7499, 0xc0, "AMD Radeon RX 7400"),
    (0x7499, 0xc1, "AMD Radeon RX 7300"),
    (0x74a0, 0x00, "AMD Instinct MI300A"),
    (0x74a1, 0x00, "AMD Instinct MI300X"),
    (0x74a2, 0x00, "AMD Instinct MI308X"),
    (0x74a5, 0x00, "AMD Instinct MI325X"),
    (0x74a9, 0x00, "AMD Instinct MI300X HF"),
    (0x74b5, 0x00, "AMD Instinct MI300X VF"),
    (0x74b6, 0x00, "AMD Instinct MI308X"),
    (0x74bd, 0x00, "AMD Instinct MI300X HF"),
    (0x7550, 0xc0, "AMD Radeon RX 9070 XT"),
    (0x7550, 0xc3, "AMD Radeon RX 9070"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_ascend() {
        assert!(DEVICES.is_sorted_by(|(one, _), (other, _)| one < other));
        assert!(DEVICES.iter().all(|&(_, chip)| usize::from(chip) < CHIPS.len()));
        assert!(PRODUCTS.is_sorted_by(|one, other| (one.0, one.1) < (other.0, other.1)));
        assert!(PRODUCTS.iter().all(|(.., name)| name.len() < 64));
    }

    #[test]
    fn chips() {
        let chip_name = |device| chip(device).map(|chip| chip.name);
        assert_eq!(chip_name(0x740f), Some("Aldebaran"));
        assert_eq!(chip_name(0x1304), Some("Spectre"));
        assert_eq!(chip_name(0x743f), Some("BEIGE_GOBY"));
        assert_eq!(chip_name(0x74a1), None);
        assert_eq!(chip_name(0x1_740f), None);
        assert_eq!(chip(0x66a1).unwrap().version, GfxVersion { major: 9, minor: 0, stepping: 6 });
    }

    #[test]
    fn products() {
        assert_eq!(product(0x744c, Some(0xc8)), Some("AMD Radeon RX 7900 XTX"));
        assert_eq!(product(0x744c, Some(0xcc)), Some("AMD Radeon RX 7900 XT"));
        assert_eq!(product(0x744c, Some(0x00)), None);
        assert_eq!(product(0x744c, None), None);
        assert_eq!(product(0x74a1, None), Some("AMD Instinct MI300X"));
        assert_eq!(product(0x740f, Some(1)), Some("AMD Instinct MI210"));
        assert_eq!(product(0xfffe, None), None);
        assert_eq!(product(u32::MAX, Some(0)), None);
    }
}
