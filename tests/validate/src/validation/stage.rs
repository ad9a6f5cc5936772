//! The stages of a validation, in their order.

use alloc::vec::Vec;

/// One stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Opening `/dev/kfd`.
    Open,
    /// The version of the driver's interface.
    Version,
    /// Nodes, their links, and a GPU address space on each GPU.
    Topology,
    /// Every heap, on every GPU that can reach it.
    Memory,
    /// Memory of the process, registered for GPUs.
    Registration,
    /// Buffers given out and taken in.
    Sharing,
    /// Events that programs set.
    Events,
    /// The compute engine and every copy engine of each GPU.
    Queues,
    /// Copies to, from and between GPUs.
    Copy,
}

impl Stage {
    /// All of them, in the order in which they run.
    pub const ALL: [Stage; 9] = [
        Stage::Open,
        Stage::Version,
        Stage::Topology,
        Stage::Memory,
        Stage::Registration,
        Stage::Sharing,
        Stage::Events,
        Stage::Queues,
        Stage::Copy,
    ];

    /// Its name on the command line and in every output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Open => "open",
            Stage::Version => "version",
            Stage::Topology => "topology",
            Stage::Memory => "memory",
            Stage::Registration => "registration",
            Stage::Sharing => "sharing",
            Stage::Events => "events",
            Stage::Queues => "queues",
            Stage::Copy => "copy",
        }
    }

    /// What is said when a call in it never returns.
    #[must_use]
    pub const fn hung(self) -> &'static str {
        match self {
            Stage::Open => "kfd-validate: out of time: a call of stage open does not return\n",
            Stage::Version => {
                "kfd-validate: out of time: a call of stage version does not return\n"
            }
            Stage::Topology => {
                "kfd-validate: out of time: a call of stage topology does not return\n"
            }
            Stage::Memory => "kfd-validate: out of time: a call of stage memory does not return\n",
            Stage::Registration => {
                "kfd-validate: out of time: a call of stage registration does not return\n"
            }
            Stage::Sharing => {
                "kfd-validate: out of time: a call of stage sharing does not return\n"
            }
            Stage::Events => "kfd-validate: out of time: a call of stage events does not return\n",
            Stage::Queues => "kfd-validate: out of time: a call of stage queues does not return\n",
            Stage::Copy => "kfd-validate: out of time: a call of stage copy does not return\n",
        }
    }

    /// Whether the others stand on it, so that it runs whatever was asked for.
    #[must_use]
    pub const fn is_foundation(self) -> bool {
        matches!(self, Stage::Open | Stage::Topology)
    }

    /// The stages of a list of names, separated by commas.
    ///
    /// # Errors
    /// The first word that names none.
    pub fn parse_list(list: &[u8]) -> Result<Vec<Stage>, &[u8]> {
        list.split(|&byte| byte == b',')
            .map(|word| {
                let known = Stage::ALL.into_iter().find(|stage| stage.name().as_bytes() == word);
                known.ok_or(word)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_have_names_and_stand_in_order() {
        for stage in Stage::ALL {
            assert_eq!(Stage::parse_list(stage.name().as_bytes()), Ok([stage].to_vec()));
            let named = alloc::format!("stage {} does", stage.name());
            assert!(stage.hung().contains(&named), "{named}");
        }
        assert!(Stage::ALL.is_sorted());
        assert_eq!(Stage::parse_list(b"memory,events").unwrap().len(), 2);
        assert_eq!(Stage::parse_list(b"memory,,"), Err(&b""[..]));
        assert_eq!(Stage::parse_list(b"Memory"), Err(&b"Memory"[..]));
    }
}
