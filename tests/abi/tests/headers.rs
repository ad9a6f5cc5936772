//! The headers declare what the tables and the Rust types say, for each generation and compiler.

use std::fs;
use std::path::Path;

use hsakmt::types;
use hsakmt_abi_tests::c::{self, COMPILERS, Compiler, PRELUDE, every_combination, include_folder};
use hsakmt_abi_tests::rust::Layouts;
use hsakmt_abi_tests::table::GENERATIONS;
use hsakmt_abi_tests::{facts, rust_names};

const INCLUDES: &str = "#include \"hsakmtctx.h\"\n#include \"hsakmt_ext.h\"\n";

/// The functions of hsakmt_ext.h, and the first generation that has each.
const EXTENSIONS: [(u32, &str); 15] = [
    (523, "hsaKmtExtCopyMemory"),
    (2026, "hsaKmtExtCopyMemoryCtx"),
    (2026, "hsaKmtExtGetDeviceHandle"),
    (523, "hsaKmtExtGetEventUse"),
    (2026, "hsaKmtExtGetEventUseCtx"),
    (523, "hsaKmtExtGetLastError"),
    (2026, "hsaKmtExtGetLastErrorCtx"),
    (523, "hsaKmtExtPumpEvents"),
    (2026, "hsaKmtExtPumpEventsCtx"),
    (523, "hsaKmtExtQueryDmaBufInfo"),
    (2026, "hsaKmtExtQueryDmaBufInfoCtx"),
    (523, "hsaKmtExtSetEventCallback"),
    (2026, "hsaKmtExtSetEventCallbackCtx"),
    (523, "hsaKmtExtSetLogSink"),
    (523, "hsaKmtExtSetTraceSink"),
];

fn folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn check(generation: u32, compiler: Compiler, name: &str, source: &str) {
    let source = format!("{PRELUDE}{INCLUDES}{source}");
    let name = format!("{name}-{generation}");
    compiler
        .check(compiler.strict(generation), folder(), &name, &source)
        .unwrap_or_else(|complaint| panic!("{complaint}"));
}

#[test]
fn each_header_stands_alone() {
    for (generation, compiler) in every_combination() {
        for header in ["hsakmttypes", "hsakmt", "hsakmtctx", "hsakmt_ext"] {
            let name = format!("alone-{header}-{generation}");
            let source = format!("#include \"{header}.h\"\n#include \"{header}.h\"\n");
            compiler
                .check(compiler.strict(generation), folder(), &name, &source)
                .unwrap_or_else(|complaint| panic!("{complaint}"));
        }
    }
}

#[test]
fn sizes_alignments_and_offsets_are_those_of_rust() {
    for (generation, compiler) in every_combination() {
        check(generation, compiler, "layouts", &c::layouts(generation));
        let extensions = c::extension_layouts(generation);
        check(generation, compiler, "extension-layouts", &extensions);
    }
}

#[test]
fn the_numbers_of_the_extensions_are_those_of_rust() {
    let levels = types::HsaExtLogLevel::ENUMERATORS.iter();
    let levels = levels.map(|(name, level)| (*name, level.0 as usize));
    let paths = types::HsaExtCopyPath::ENUMERATORS.iter();
    let paths = paths.map(|(name, path)| (*name, path.0 as usize));
    let sizes = [
        ("HSA_EXT_OBJECT_NAME_SIZE", types::HSA_EXT_OBJECT_NAME_SIZE),
        ("HSA_EXT_OPERATION_NAME_SIZE", types::HSA_EXT_OPERATION_NAME_SIZE),
    ];
    let source: String = levels
        .chain(paths)
        .chain(sizes)
        .map(|(name, value)| format!("ASSERT({name} == {value});\n"))
        .collect();
    for (generation, compiler) in every_combination() {
        check(generation, compiler, "levels", &source);
    }
}

#[test]
fn the_extensions_have_their_signatures() {
    let since_2026 = "
        ASSERT(IS(&hsaKmtExtCopyMemoryCtx,
                  HSAKMT_STATUS (*)(HsaKFDContext *, void *, const void *, HSAuint64,
                                    HsaExtCopyOptions *)));
        ASSERT(IS(&hsaKmtExtGetLastErrorCtx,
                  HSAKMT_STATUS (*)(HsaKFDContext *, HsaExtErrorDetail *)));
        ASSERT(IS(&hsaKmtExtQueryDmaBufInfoCtx,
                  HSAKMT_STATUS (*)(HsaKFDContext *, int, HsaExtDmaBufInfo *)));
        ASSERT(IS(&hsaKmtExtGetDeviceHandle,
                  HSAKMT_STATUS (*)(HSAuint32, HsaAMDGPUDeviceHandle *)));
        ASSERT(IS(&hsaKmtExtGetEventUseCtx,
                  HSAKMT_STATUS (*)(HsaKFDContext *, HSAuint32 *, HSAuint32 *)));
        ASSERT(IS(&hsaKmtExtSetEventCallbackCtx,
                  HSAKMT_STATUS (*)(HsaKFDContext *, HsaEvent *, HsaExtEventCallback, void *)));
        ASSERT(IS(&hsaKmtExtPumpEventsCtx,
                  HSAKMT_STATUS (*)(HsaKFDContext *, HSAuint32, HSAuint32 *)));
    ";
    let source = "
        ASSERT(IS(&hsaKmtExtGetLastError, HSAKMT_STATUS (*)(HsaExtErrorDetail *)));
        ASSERT(IS(&hsaKmtExtCopyMemory,
                  HSAKMT_STATUS (*)(void *, const void *, HSAuint64, HsaExtCopyOptions *)));
        ASSERT(IS(&hsaKmtExtQueryDmaBufInfo, HSAKMT_STATUS (*)(int, HsaExtDmaBufInfo *)));
        ASSERT(IS(&hsaKmtExtSetLogSink, HSAKMT_STATUS (*)(HsaExtLogSink, void *, HSAuint32)));
        ASSERT(IS(&hsaKmtExtSetTraceSink, HSAKMT_STATUS (*)(HsaExtTraceSink, void *)));
        ASSERT(IS(&hsaKmtExtGetEventUse, HSAKMT_STATUS (*)(HSAuint32 *, HSAuint32 *)));
        ASSERT(IS(&hsaKmtExtSetEventCallback,
                  HSAKMT_STATUS (*)(HsaEvent *, HsaExtEventCallback, void *)));
        ASSERT(IS(&hsaKmtExtPumpEvents, HSAKMT_STATUS (*)(HSAuint32, HSAuint32 *)));
        ASSERT(IS((HsaExtEventCallback)0, void (*)(void *, HsaEvent *)));
        ASSERT(IS((HsaExtLogSink)0, void (*)(void *, HSAuint32, const char *)));
        ASSERT(IS((HsaExtTraceSink)0, void (*)(void *, const HsaExtTraceRecord *)));
    ";
    for (generation, compiler) in every_combination() {
        let newer = if generation >= 2026 { since_2026 } else { "" };
        check(generation, compiler, "extensions", &[source, newer].concat());
    }
}

#[test]
fn enumerators_and_constants_are_those_of_rust() {
    let facts = facts();
    for (generation, compiler) in every_combination() {
        check(generation, compiler, "values", &c::values(&facts, generation));
    }
}

#[test]
fn types_are_those_of_the_tables() {
    let facts = facts();
    for (generation, compiler) in every_combination() {
        check(generation, compiler, "types", &c::types(&facts, generation));
    }
}

#[test]
fn functions_have_the_signatures_of_the_tables() {
    let facts = facts();
    for (generation, compiler) in every_combination() {
        check(generation, compiler, "signatures", &c::signatures(&facts, generation));
    }
}

#[test]
fn a_generation_lacks_the_names_of_the_others() {
    let facts = facts();
    for (generation, compiler) in every_combination() {
        check(generation, compiler, "absences", &c::absences(&facts, generation));
    }
}

#[test]
fn no_other_function_is_declared() {
    let facts = facts();
    let compiler = COMPILERS[0];
    for generation in GENERATIONS {
        let mut command = compiler.strict(generation);
        command.args(["-E", "-P"]);
        let name = format!("functions-{generation}");
        let text = compiler.run(command, folder(), &name, INCLUDES).unwrap();
        let extensions = EXTENSIONS.iter().filter(|(since, _)| *since <= generation);
        let mut expected: Vec<String> = facts
            .functions
            .iter()
            .filter(|row| row.generations.has(generation))
            .map(|row| row.name.clone())
            .chain(extensions.map(|(_, name)| name.to_string()))
            .collect();
        expected.sort();
        assert_eq!(c::declared_functions(&text), expected, "generation {generation}");
    }
}

#[test]
fn a_bit_field_has_the_bits_of_rust() {
    let facts = facts();
    for (generation, compiler) in every_combination() {
        let layouts = Layouts::of(generation);
        let expected: String = facts
            .bits
            .iter()
            .filter(|row| row.generations.has(generation))
            .map(|row| {
                let (record, path) = (&row.record, &row.path);
                let (first, width) = if rust_names::is_reserved(path) {
                    (row.first, row.width)
                } else {
                    let name = path.rsplit('.').next().unwrap();
                    let bits = layouts.bits.iter().find(|b| b.record == record && b.name == name);
                    let bits = bits.unwrap_or_else(|| panic!("Rust has no {record} {path}"));
                    (bits.first, bits.width)
                };
                format!("{record} {path} {:x}\n", (u64::MAX >> (64 - width)) << first)
            })
            .collect();
        let name = format!("bits-{generation}");
        let source = c::bits(&facts, generation);
        let found = compiler.print(compiler.strict(generation), folder(), &name, &source);
        assert_eq!(found.unwrap(), expected, "generation {generation}, {}", compiler.program);
    }
}

#[test]
fn identifiers_are_those_of_the_tables() {
    let facts = facts();
    let expected: String = facts
        .uuids
        .iter()
        .map(|row| format!("{} {}{}{}{}\n", row.name, row.data1, row.data2, row.data3, row.data4))
        .collect();
    for (generation, compiler) in every_combination() {
        let name = format!("uuids-{generation}");
        let source = c::uuids(&facts);
        let found = compiler.print(compiler.strict(generation), folder(), &name, &source);
        assert_eq!(found.unwrap(), expected);
    }
}

#[test]
fn macros_with_arguments_give_a_bit() {
    let source = "
        ASSERT(HSA_EC_MASK(HSA_DBG_EC_QUEUE_WAVE_ABORT) == 1);
        ASSERT(HSA_EC_MASK(0 | HSA_DBG_EC_PROCESS_DEVICE_REMOVE) == 1ULL << 48);
        ASSERT(HSA_SMI_EVENT_MASK_FROM_INDEX(HSA_SMI_EVENT_VMFAULT) == 1);
        ASSERT(HSA_SMI_EVENT_MASK_FROM_INDEX(0 | HSA_SMI_EVENT_ALL_PROCESS) == 1ULL << 63);
    ";
    for (generation, compiler) in every_combination() {
        let source = if generation >= 2025 {
            source
        } else {
            "#if defined(HSA_EC_MASK) || defined(HSA_SMI_EVENT_MASK_FROM_INDEX)\n#error\n#endif\n"
        };
        check(generation, compiler, "macros", source);
    }
}

/// The distribution writes its generation into the one line that sets the default.
#[test]
fn the_default_generation_is_one_line() {
    let text = fs::read_to_string(include_folder().join("hsakmttypes.h")).unwrap();
    let lines = text.lines().filter(|line| *line == "#define HSAKMT_ABI_GENERATION 2026");
    assert_eq!(lines.count(), 1);

    let compiler = COMPILERS[0];
    let source = "#include \"hsakmttypes.h\"\n\
                  #if HSAKMT_ABI_GENERATION != 2026\n#error \"another default\"\n#endif\n";
    let mut command = compiler.command();
    command.arg("-I").arg(include_folder());
    compiler.check(command, folder(), "default", source).unwrap();
}

#[test]
fn an_unknown_generation_does_not_compile() {
    for compiler in COMPILERS {
        let source = "#include \"hsakmttypes.h\"\n";
        let complaint = compiler.check(compiler.strict(2024), folder(), "unknown", source);
        assert!(complaint.unwrap_err().contains("HSAKMT_ABI_GENERATION is 523, 2025 or 2026"));
    }
}

/// Where the headers of 5.2.3 are installed, they must agree with ours for that generation.
#[test]
fn the_installed_headers_of_5_2_3_agree() {
    let installed = Path::new("/usr/include/hsakmt.h");
    let text = fs::read_to_string(installed).unwrap_or_default();
    // Only that generation has this function.
    if !text.contains("hsaKmtGetKernelDebugTrapVersionInfo") {
        println!("skipped: {} is not that of libhsakmt-dev 5.2.3", installed.display());
        return;
    }
    let facts = facts();
    let source = [
        PRELUDE,
        "#include <hsakmt.h>\n",
        &c::layouts(523),
        &c::values(&facts, 523),
        &c::types(&facts, 523),
        &c::signatures(&facts, 523),
        &c::absences(&facts, 523),
    ]
    .concat();
    // musl-gcc does not look into /usr/include.
    for compiler in COMPILERS.into_iter().filter(|each| each.program != "musl-gcc") {
        let theirs = || {
            let mut command = compiler.command();
            command.arg("-w");
            command
        };
        compiler
            .check(theirs(), folder(), "installed", &source)
            .unwrap_or_else(|complaint| panic!("{complaint}"));
        for (name, program) in [("bits", c::bits(&facts, 523)), ("uuids", c::uuids(&facts))] {
            let ours = compiler.strict(523);
            let ours = compiler.print(ours, folder(), &format!("our-{name}"), &program);
            let theirs = compiler.print(theirs(), folder(), &format!("their-{name}"), &program);
            assert_eq!(ours.unwrap(), theirs.unwrap(), "{name}, {}", compiler.program);
        }
    }
}
