# Sourced by tests/c/run: checks of the artefacts themselves. Uses its check,
# dist and work.

# What a process must have for the shared library, the static one the same. The
# C library has all of them; a program without one brings them, environ excepted.
allowed_undefined='bcmp memcmp memcpy memmove memset strlen'
# And those of a libdrm_amdgpu, if the program brings one.
libdrm_weak='amdgpu_device_initialize2 amdgpu_device_initialize amdgpu_device_deinitialize amdgpu_device_get_fd'
allowed_weak="environ $libdrm_weak"

# symbols FILE: name, binding and section of every global symbol.
symbols() {
	readelf -sW "$1" 2>/dev/null |
		awk '($5 == "GLOBAL" || $5 == "WEAK") && $8 != "" { sub(/@.*/, "", $8); print $8, $5, $7, $6 }' |
		sort -u
}

# dynamic_symbols FILE: the same of the dynamic table, with versions.
dynamic_symbols() {
	readelf --dyn-syms -W "$1" |
		awk '($5 == "GLOBAL" || $5 == "WEAK") && $8 != "" { print $8, $5, $7 }' | sort -u
}

# The functions that the table of exports names, each with its parameters in C:
# `NAME TYPE, TYPE`. The types of the table have the names of the C types.
exports_in_source() {
	sed 's,//.*,,' ffi/src/export.rs | tr '\n' ' ' |
		grep -oE '(fn hsaKmt[A-Za-z0-9_]*\([^)]*\) *=>|extern "C" fn hsaKmt[A-Za-z0-9_]*\([^)]*\) *->)' |
		sed -E '
			s/^.*fn (hsaKmt[A-Za-z0-9_]*)\(/\1 /
			s/\) *(=>|->)$//
			s/<\$generation as \$crate::generation::Generation>::/Hsa/g
			s/\$crate::types:://g
			s/::core::ffi:://g
			s/[A-Za-z_][A-Za-z0-9_]*: //g
			s/HsaHsa/Hsa/g
			s/ +/ /g
			s/, *$//
		' |
		awk '
			# a Rust type in C
			function c(type,   rest) {
				gsub(/^ +| +$/, "", type)
				if (type ~ /^\*mut /) { rest = substr(type, 6); return c(rest) " *" }
				if (type ~ /^\*const /) { rest = substr(type, 8); return c(rest) " const *" }
				if (type in names) return names[type]
				return type
			}
			BEGIN {
				names["u8"] = "HSAuint8"; names["u16"] = "HSAuint16"
				names["u32"] = "HSAuint32"; names["u64"] = "HSAuint64"
				names["i32"] = "HSAint32"; names["i64"] = "HSAint64"
				names["usize"] = "size_t"; names["c_void"] = "void"
				names["c_char"] = "char"; names["c_int"] = "int"
			}
			{
				name = $1
				$1 = ""
				count = split($0, parts, ",")
				line = ""
				for (i = 1; i <= count; i++)
					if (parts[i] ~ /[A-Za-z]/)
						line = line (line == "" ? "" : ", ") c(parts[i])
				print name, (line == "" ? "void" : line)
			}' | sort -u
}

# Lines `NAME` of every function that the headers of a generation declare.
declared_functions() {
	gcc -E -P -I"$(dist "$1")/include" -include hsakmt.h -include hsakmt_ext.h \
		-include hsakmtctx.h -x c /dev/null | tr '\n' ' ' |
		grep -oE 'hsaKmt[A-Za-z0-9_]* *\(' | tr -d ' (' | sort -u
}

needs_no_library() {
	! readelf -dW "$1" | grep -E 'NEEDED|RPATH|RUNPATH|TEXTREL'
}

has_soname() {
	readelf -dW "$1" | grep -qF "SONAME" && readelf -dW "$1" | grep -qF "[$2]"
}

no_thread_local_memory() {
	! readelf -lW "$1" | grep -w TLS
}

no_executable_stack() {
	readelf -lW "$1" | awk '$1 == "GNU_STACK" { found = 1; if ($7 ~ /E/) bad = 1 } END { exit bad || !found }'
}

# Every symbol that a program can link to is versioned, and nothing else is there.
exports_are_versioned() {
	dynamic_symbols "$1" | awk '
		$3 == "UND" || $1 == "HSAKMT_1@@HSAKMT_1" || $1 == "HSAKMT_1" { next }
		$1 !~ /^hsaKmt[A-Za-z0-9_]*@@HSAKMT_1$/ { print; bad = 1 }
		{ count++ }
		END { exit bad || !count }'
}

exported() {
	dynamic_symbols "$1" | awk '$3 != "UND" && /^hsaKmt/ { sub(/@.*/, "", $1); print $1 }' | sort -u
}

exports_are_those_of_the_source() {
	diff <(exported "$1") <(exports_in_source | cut -d' ' -f1)
}

archive_exports_the_same() {
	diff <(exported "$1") <(symbols "$2" | awk '$3 != "UND" { print $1 }')
}

undefined_are_allowed() {
	local binding=$2 allowed=$3
	! symbols "$1" | awk -v binding="$binding" '$3 == "UND" && $2 == binding { print $1 }' |
		grep -vxF -e "${allowed// /$'\n'}" -
}

no_unwinder() {
	! readelf -sW "$1" 2>/dev/null | grep -E '_Unwind_|personality' | grep -vE 'WEAK|LOCAL'
}

no_loader_and_no_threads() {
	! readelf -sW "$1" 2>/dev/null | awk '{ sub(/@.*/, "", $8); print $8 }' |
		grep -xE 'dl(m?open|v?sym)|(pthread|thrd)_create|clone3?|__tls_get_addr'
}

# Every exported function is declared in a header of the newest generation.
exports_are_declared() {
	[ -z "$(comm -23 <(exported "$1") <(declared_functions 2026) | tee /dev/stderr)" ]
}

# The functions of the table, declared again with the table's types: another type
# than the header's is an error.
types_are_those_of_the_headers() {
	local generation=$1 file=$work/redeclared.$1.c
	{
		echo '#include "hsakmt.h"'
		echo '#include "hsakmt_ext.h"'
		echo '#include "hsakmtctx.h"'
		exports_in_source | grep -wF -f <(declared_functions "$generation") |
			sed -E 's/^([^ ]*) (.*)/HSAKMT_STATUS \1(\2);/' |
			# The one argument whose type the generations name differently.
			if [ "$generation" = 2026 ]; then sed 's/HsaMemMapFlags/HsaMemFlags/'; else cat; fi
	} >"$file"
	[ "$(wc -l <"$file")" -gt 10 ] &&
		gcc -std=c11 -Wall -Wextra -Werror -I"$(dist "$generation")/include" -fsyntax-only "$file"
}

# A program that takes the address of every function that the library exports and
# the headers declare, as a caller's table of functions does.
make_addresses() {
	local generation=$1
	{
		echo '#include "expect.h"'
		echo '#include "hsakmt.h"'
		echo '#include "hsakmt_ext.h"'
		echo '#include "hsakmtctx.h"'
		echo 'int main(void)'
		echo '{'
		echo '    typedef void (*Function)(void);'
		echo '    static const Function functions[] = {'
		comm -12 <(exported "$(dist "$generation")/lib/libhsakmt.so.1") \
			<(declared_functions "$generation") | sed 's/.*/        (Function)&,/'
		echo '    };'
		echo '    size_t i, present = 0, count = sizeof(functions) / sizeof(functions[0]);'
		echo '    for (i = 0; i < count; i++)'
		echo '        present += functions[i] != NULL;'
		echo '    expect_equal(present, count, "every exported function has an address");'
		echo '    return failures != 0;'
		echo '}'
	} >"$work/addresses.$generation.c"
}

addresses() {
	local generation=$1 way compiler mode binary folder
	folder=$(dist "$generation")
	make_addresses "$generation"
	for way in "${ways[@]}"; do
		compiler=${way%%:*} mode=${way#*:}
		binary=$work/addresses.$generation.$compiler.$mode
		local command=("$compiler" -Wall -Wextra -Wno-cast-function-type -O1 -fPIE
			-I"$folder/include" -Itests/c)
		[ "$compiler" != g++ ] || command+=(-x c++)
		"${command[@]}" -c -o "$binary.o" "$work/addresses.$generation.c" &&
			link "$mode" "$compiler" "$folder/lib" libhsakmt "$binary.o" "$binary" ||
			{ fail "addresses [$generation $compiler $mode] is built"; continue; }
		# Bound at the start, every one of them.
		run "addresses [$generation $compiler $mode]" env LD_BIND_NOW=1 "$binary"
	done
}

# check_artefacts GENERATION
check_artefacts() {
	local generation=$1 lib name so archive
	lib=$(dist "$generation")/lib
	for name in libhsakmt libhsakmt-sim; do
		so=$lib/$name.so.1 archive=$lib/$name.a
		label="$name $generation"
		check "$label: the shared library needs no other" needs_no_library "$so"
		check "$label: its soname" has_soname "$so" "$name.so.1"
		check "$label: no thread-local memory" no_thread_local_memory "$so"
		check "$label: no executable stack" no_executable_stack "$so"
		check "$label: every exported symbol is hsaKmt…@@HSAKMT_1" exports_are_versioned "$so"
		check "$label: the exports are those of the source" exports_are_those_of_the_source "$so"
		check "$label: the archive defines the same" archive_exports_the_same "$so" "$archive"
		for file in "$so" "$archive"; do
			check "$label: only memory functions are undefined in ${file##*/}" \
				undefined_are_allowed "$file" GLOBAL "$allowed_undefined"
			check "$label: weak symbols of ${file##*/}" \
				undefined_are_allowed "$file" WEAK "$allowed_weak"
			check "$label: no unwinder in ${file##*/}" no_unwinder "$file"
			check "$label: no loader, no threads in ${file##*/}" no_loader_and_no_threads "$file"
		done
	done
	check "exports of $generation are declared in the headers" \
		exports_are_declared "$lib/libhsakmt.so.1"
	check "types of the functions of $generation" types_are_those_of_the_headers "$generation"
	addresses "$generation"
	echo "# of $generation declared and not yet exported:" \
		"$(comm -13 <(exported "$lib/libhsakmt.so.1") <(declared_functions "$generation") | wc -l)"
}

tell_sizes() {
	local generation file
	echo '# file sizes in bytes'
	for generation in 2026 2025 debian; do
		for file in "$(dist "$generation")"/lib/*.{a,so.1} "$(dist "$generation")"/bin/*; do
			[ -f "$file" ] && printf '# %9d  %s\n' "$(stat -c %s "$file")" "${file#"$target/"}"
		done
	done
	for file in closed.2026.gcc.static closed.2026.musl-gcc.musl-static freestanding.2026.gcc.freestanding; do
		[ -f "$work/$file" ] || continue
		strip -o "$work/stripped" "$work/$file"
		printf '# %9d  %s, stripped\n' "$(stat -c %s "$work/stripped")" "$file"
	done
}
