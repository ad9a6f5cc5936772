//! Exceptions of GPUs while a validation runs: resets, memory errors and faults.
//!
//! The driver tells them by events of two kinds, which are held from the opening on and
//! looked at after each stage, so that no exception goes unseen because the stage in
//! which it came was about something else.

use alloc::format;
use alloc::string::String;
use core::fmt;

use hsakmt_core::error::Error;
use hsakmt_core::event::{EventRequest, Waited};
use hsakmt_core::process::Guard;
use hsakmt_core::seam::Platform;
use hsakmt_core::uapi::kfd::{
    EventData, EventType, HwExceptionData, MemoryErrorType, MemoryExceptionData, ResetCause,
    ResetType,
};

use super::findings::Findings;
use super::subject::Gpu;

/// What the library knows our events by.
const OWNER: u64 = 3;

/// The events that tell of exceptions.
#[derive(Debug)]
pub struct Exceptions {
    reset: Option<u32>,
    memory: Option<u32>,
}

impl Exceptions {
    /// None are told.
    pub const UNTOLD: Exceptions = Exceptions { reset: None, memory: None };

    /// Has the driver tell them from now on. Where it gives no events that is a note.
    pub fn watch<P: Platform>(guard: &Guard<'_, P>, findings: &mut Findings) -> Exceptions {
        let mut event = |kind, what| {
            let request =
                EventRequest { kind, node: 0, manual_reset: false, is_set: false, owner: OWNER };
            let created = guard.create_event(&request);
            if let Err(error) = created {
                findings.note(format!("{what} during the run are not seen: {error}"));
            }
            created.ok().map(|event| event.id)
        };
        let reset = event(EventType::HW_EXCEPTION, "resets of GPUs");
        let memory = event(EventType::MEMORY, "memory errors and faults");
        Exceptions { reset, memory }
    }

    /// Fails the stage for each exception since the last look.
    pub fn look<P: Platform>(&self, guard: &Guard<'_, P>, gpus: &[Gpu], findings: &mut Findings) {
        let told = |id: Option<u32>| -> Result<Option<EventData>, Error> {
            let Some(event_id) = id else { return Ok(None) };
            let mut entry = [EventData { event_id, ..EventData::default() }];
            let waited = guard.wait_for_events(&mut entry, false, 0)?;
            let [entry] = entry;
            Ok((waited == Waited::Complete).then_some(entry))
        };
        if let Some(Some(entry)) = findings.expect(&"resets of GPUs", told(self.reset)) {
            let data = entry.hw_exception();
            // Queues of before are lost, which the library has to know. A GPU that is not
            // known yet has none.
            let _ = guard.hw_exception(&data);
            findings.fail(Reset { gpu: name(gpus, data.gpu_id), data });
        }
        if let Some(Some(entry)) = findings.expect(&"memory errors", told(self.memory)) {
            let data = entry.memory_exception();
            findings.fail(MemoryError { gpu: name(gpus, data.gpu_id), data });
        }
    }

    /// Takes the events back.
    pub fn end<P: Platform>(self, guard: &Guard<'_, P>, findings: &mut Findings) {
        for event in [self.reset, self.memory].into_iter().flatten() {
            findings.expect(&"events of exceptions", guard.destroy_event(event, OWNER));
        }
    }
}

fn name(gpus: &[Gpu], gpu_id: u32) -> String {
    match gpus.iter().find(|gpu| gpu.gpu_id == gpu_id) {
        Some(gpu) => gpu.name.clone(),
        None if gpu_id == 0 => "a GPU that the driver does not name".into(),
        None => format!("GPU gpu_id {gpu_id:#x}"),
    }
}

struct Reset {
    gpu: String,
    data: HwExceptionData,
}

impl fmt::Display for Reset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HwExceptionData { reset_type, reset_cause, memory_lost, .. } = self.data;
        write!(f, "{}: was reset during this stage", self.gpu)?;
        match reset_type {
            ResetType::WHOLE_GPU_RESET => f.write_str(" as a whole")?,
            ResetType::PER_ENGINE_RESET => f.write_str(", one engine of it")?,
            other => write!(f, " (type {})", other.0)?,
        }
        match reset_cause {
            ResetCause::GPU_HANG => f.write_str(": it hung")?,
            ResetCause::ECC => f.write_str(": uncorrectable memory error")?,
            other => write!(f, ": cause {}", other.0)?,
        }
        f.write_str(if memory_lost == 0 { "" } else { "; its memory is lost" })
    }
}

struct MemoryError {
    gpu: String,
    data: MemoryExceptionData,
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MemoryExceptionData { failure, va, ErrorType: error_type, .. } = &self.data;
        write!(f, "{}: ", self.gpu)?;
        let near = if failure.imprecise == 0 { "" } else { " or near it" };
        match *error_type {
            MemoryErrorType::NO_RAS => {
                write!(f, "memory fault during this stage at {va:#x}{near}")?;
                for (bit, why) in [
                    (failure.NotPresent, ": no page is mapped there"),
                    (failure.ReadOnly, ": the page may not be written"),
                    (failure.NoExecute, ": the page may not be executed"),
                ] {
                    f.write_str(if bit == 0 { "" } else { why })?;
                }
                Ok(())
            }
            MemoryErrorType::SRAM_ECC => {
                f.write_str("uncorrectable error (ECC) in its own memories during this stage")
            }
            MemoryErrorType::POISON_CONSUMED => f.write_str("used poisoned data during this stage"),
            MemoryErrorType::GPU_HANG => f.write_str("hung during this stage"),
            other => write!(f, "memory error of type {} during this stage", other.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use hsakmt_core::context::Options;
    use hsakmt_core::process::Process;

    use crate::simulation::Simulation;
    use crate::validation::findings::Outcome;
    use crate::validation::stage::Stage;

    #[test]
    fn a_reset_fails_the_stage_in_which_it_came_and_no_other() {
        let simulation = Simulation::new("mi300x:gpus=2,cpus=1,cores=1").unwrap();
        let process = Process::new(simulation.platform());
        process.open_primary(|| Ok(Options::default())).unwrap();
        let guard = process.primary().unwrap();
        guard.acquire_machine().unwrap();
        let gpu_id = guard.machine(|machine| Ok(machine.node(1)?.gpu_id)).unwrap();
        let gpus = [Gpu { node: 1, gpu_id, name: "GPU node 1".into() }];
        let mut findings = Findings::new(Stage::Open);
        let exceptions = Exceptions::watch(&guard, &mut findings);
        exceptions.look(&guard, &gpus, &mut findings);
        assert_eq!((findings.outcome(), findings.notes.len()), (Outcome::Passed, 0));
        process.platform().process().reset_gpu(gpu_id, true);
        exceptions.look(&guard, &gpus, &mut findings);
        // The driver tells it by events of both kinds.
        let [reset, memory] = &findings.failures[..] else { panic!("{findings:?}") };
        assert!(reset.starts_with("GPU node 1: was reset during this stage"), "{reset}");
        assert!(memory.starts_with("GPU node 1: uncorrectable error (ECC)"), "{memory}");
        let mut next = Findings::new(Stage::Memory);
        exceptions.look(&guard, &gpus, &mut next);
        exceptions.end(&guard, &mut next);
        assert_eq!(next.outcome(), Outcome::Passed, "{next:?}");
    }

    #[test]
    fn what_it_was_is_said() {
        let mut data = MemoryExceptionData { va: 0x1234_5000, gpu_id: 7, ..Default::default() };
        let said = |data| alloc::format!("{}", MemoryError { gpu: name(&[], 7), data });
        data.failure.NotPresent = 1;
        assert_eq!(
            said(data),
            "GPU gpu_id 0x7: memory fault during this stage at 0x12345000: no page is mapped there"
        );
        for (kind, word) in [
            (MemoryErrorType::SRAM_ECC, "ECC"),
            (MemoryErrorType::POISON_CONSUMED, "poisoned"),
            (MemoryErrorType::GPU_HANG, "hung"),
            (MemoryErrorType(9), "type 9"),
        ] {
            data.ErrorType = kind;
            assert!(said(data).contains(word), "{}", said(data));
        }
        let said = |reset_type, reset_cause, memory_lost| {
            let data = HwExceptionData { reset_type, reset_cause, memory_lost, gpu_id: 0 };
            alloc::format!("{}", Reset { gpu: name(&[], 0), data })
        };
        assert_eq!(
            said(ResetType::WHOLE_GPU_RESET, ResetCause::ECC, 1),
            "a GPU that the driver does not name: was reset during this stage as a whole: \
             uncorrectable memory error; its memory is lost"
        );
        assert!(said(ResetType::PER_ENGINE_RESET, ResetCause::GPU_HANG, 0).ends_with(": it hung"));
    }
}
