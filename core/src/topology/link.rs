//! Links between nodes.

/// How two nodes are connected (`HSA_IOLINKTYPE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct LinkType(pub u32);

impl LinkType {
    /// Not said.
    pub const UNDEFINED: LinkType = LinkType(0);
    /// HyperTransport, and what follows it between AMD CPUs.
    pub const HYPERTRANSPORT: LinkType = LinkType(1);
    /// PCI Express.
    pub const PCI_EXPRESS: LinkType = LinkType(2);
    /// Intel's link between CPUs.
    pub const QPI_1_1: LinkType = LinkType(5);
    /// AMD's link between GPUs.
    pub const XGMI: LinkType = LinkType(11);
}

/// A link from one node to another, by public node ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IoLink {
    /// How they are connected.
    pub link_type: LinkType,
    /// Version of the link's type.
    pub version_major: u32,
    /// Minor version of the link's type.
    pub version_minor: u32,
    /// The node that the link belongs to.
    pub node_from: u32,
    /// The node at the other end.
    pub node_to: u32,
    /// Cost relative to other links, as SLIT counts it.
    pub weight: u32,
    /// ns.
    pub min_latency: u32,
    /// ns.
    pub max_latency: u32,
    /// MB/s.
    pub min_bandwidth: u32,
    /// MB/s.
    pub max_bandwidth: u32,
    /// Bytes.
    pub recommended_transfer_size: u32,
    /// SDMA engines that serve the link best, one bit each.
    pub recommended_sdma_engine_id_mask: u32,
    /// `HSA_LINKPROPERTY` bits: 0 override, 1 non-coherent, 2 no 32-bit atomics,
    /// 3 no 64-bit atomics, 4 no peer-to-peer DMA.
    pub flags: u32,
}
