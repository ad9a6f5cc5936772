//! The vocabulary of both seams: one name for each operation.

use core::fmt;

use super::driver::DeviceNode;

macro_rules! operations {
    ($($(#[$meta:meta])* $kind:ident = $name:literal, $fallible:literal, $done:literal, $refused:literal;)*) => {
        /// What kind of operation passes a seam.
        ///
        /// The wrappers count, trace and refuse operations by these kinds. The
        /// blocks that [`Execute`](OperationKind::Execute) sends have names of
        /// their own besides.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum OperationKind {
            $($(#[$meta])* $kind,)*
        }

        impl OperationKind {
            /// Every kind, those of [`Os`](super::Os) first.
            pub const ALL: &'static [OperationKind] = &[$(OperationKind::$kind,)*];

            /// The name in fault plans, counts and traces.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(OperationKind::$kind => $name,)*
                }
            }

            /// The kind with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<OperationKind> {
                match name {
                    $($name => Some(OperationKind::$kind),)*
                    _ => None,
                }
            }

            /// Whether the operation can answer an error at all.
            #[must_use]
            pub const fn is_fallible(self) -> bool {
                match self {
                    $(OperationKind::$kind => $fallible,)*
                }
            }

            /// How many system calls the operation documents, by whether it
            /// succeeded.
            ///
            /// Nominal where the number depends on the outside: a file that
            /// fits the buffer costs open, read, close; a folder that fits one
            /// buffer costs open, two getdents64, close; a failed one of either
            /// kind counts as refused by open. An inherited device is compared
            /// with its node (two calls) and closed.
            #[must_use]
            pub const fn system_calls(self, succeeded: bool) -> u64 {
                let (done, refused) = match self {
                    $(OperationKind::$kind => ($done, $refused),)*
                };
                if succeeded { done } else { refused }
            }
        }
    };
}

operations! {
    /// [`Os::page_size`](super::Os::page_size).
    PageSize = "page_size", false, 0, 0;
    /// [`Os::map`](super::Os::map).
    Map = "map", true, 1, 1;
    /// [`Os::unmap`](super::Os::unmap).
    Unmap = "unmap", true, 1, 1;
    /// [`Os::protect`](super::Os::protect).
    Protect = "protect", true, 1, 1;
    /// [`Os::advise`](super::Os::advise).
    Advise = "advise", true, 1, 1;
    /// [`Os::bind`](super::Os::bind).
    Bind = "bind", true, 1, 1;
    /// [`Os::read_file`](super::Os::read_file).
    ReadFile = "read_file", true, 3, 1;
    /// [`Os::list_folder`](super::Os::list_folder).
    ListFolder = "list_folder", true, 4, 1;
    /// [`Os::now`](super::Os::now).
    Now = "now", false, 1, 1;
    /// [`Os::sleep`](super::Os::sleep).
    Sleep = "sleep", false, 1, 1;
    /// [`Os::futex_wait`](super::Os::futex_wait).
    FutexWait = "futex_wait", true, 1, 1;
    /// [`Os::futex_wake`](super::Os::futex_wake).
    FutexWake = "futex_wake", false, 1, 1;
    /// [`Os::thread_id`](super::Os::thread_id).
    ThreadId = "thread_id", false, 1, 1;
    /// [`Os::process_id`](super::Os::process_id).
    ProcessId = "process_id", false, 1, 1;
    /// [`Os::fork_word`](super::Os::fork_word).
    ForkWord = "fork_word", false, 0, 0;
    /// [`Os::wmb_device`](super::Os::wmb_device).
    WmbDevice = "wmb_device", false, 0, 0;
    /// [`Os::rmb_device`](super::Os::rmb_device).
    RmbDevice = "rmb_device", false, 0, 0;
    /// [`Os::flush_wc`](super::Os::flush_wc).
    FlushWc = "flush_wc", false, 0, 0;
    /// [`Driver::open`](super::Driver::open) of the compute driver's node.
    OpenKfd = "open-kfd", true, 1, 1;
    /// [`Driver::open`](super::Driver::open) of a render node.
    OpenRender = "open-render", true, 1, 1;
    /// [`Driver::open`](super::Driver::open) of the udmabuf device.
    OpenUdmabuf = "open-udmabuf", true, 1, 1;
    /// [`Driver::memory_file`](super::Driver::memory_file).
    MemoryFile = "memory_file", true, 3, 1;
    /// [`Driver::execute`](super::Driver::execute), any block.
    Execute = "ioctl", true, 1, 1;
    /// [`Driver::map`](super::Driver::map).
    MapDevice = "map-device", true, 1, 1;
    /// A [`Driver::Device`](super::Driver::Device) dropped.
    Close = "close", false, 1, 1;
    /// [`Driver::close_inherited`](super::Driver::close_inherited).
    CloseInherited = "close_inherited", false, 3, 3;
    /// [`Driver::token`](super::Driver::token).
    Token = "token", false, 0, 0;
    /// [`Driver::adopt`](super::Driver::adopt).
    Adopt = "adopt", false, 0, 0;
    /// [`Driver::release`](super::Driver::release).
    Release = "release", false, 0, 0;
}

impl OperationKind {
    /// The kind of opening this node.
    #[must_use]
    pub const fn open(node: DeviceNode) -> OperationKind {
        match node {
            DeviceNode::Kfd => OperationKind::OpenKfd,
            DeviceNode::Render(_) => OperationKind::OpenRender,
            DeviceNode::Udmabuf => OperationKind::OpenUdmabuf,
        }
    }

    /// Whether it is [`Driver::open`](super::Driver::open) of whatever node.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(
            self,
            OperationKind::OpenKfd | OperationKind::OpenRender | OperationKind::OpenUdmabuf
        )
    }
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::OperationKind;

    #[test]
    fn names_are_distinct_and_go_both_ways() {
        for &kind in OperationKind::ALL {
            assert_eq!(OperationKind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(OperationKind::from_name("GET_VERSION"), None);
    }

    #[test]
    fn kinds_are_indices_of_the_list() {
        for (index, &kind) in OperationKind::ALL.iter().enumerate() {
            assert_eq!(kind as usize, index);
        }
    }

    #[test]
    fn a_file_costs_three_system_calls() {
        assert_eq!(OperationKind::ReadFile.system_calls(true), 3);
        assert_eq!(OperationKind::ReadFile.system_calls(false), 1);
        assert_eq!(OperationKind::Execute.system_calls(false), 1);
        assert_eq!(OperationKind::WmbDevice.system_calls(true), 0);
    }
}
