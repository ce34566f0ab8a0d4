# SPDX-License-Identifier: Apache-2.0
# Generates the files for Rust from the description of the ABI: a module for each public header, and tests.
package AbiRust;
use strict;
use warnings;
use AbiFiles;

my %rust = (int32_t => 'i32', int64_t => 'i64', uint64_t => 'u64', size_t => 'usize', double => 'f64', char => 'c_char', void => 'c_void');

sub type_of {
    my ($type) = @_;
    my ($const, $base, $rest) = $type =~ /^(const )?(\w+) ?((?:\*|\*const \*)*)$/;
    my $made = $rust{$base} // $base;
    return $made if $rest eq '';
    $made = ($const ? '*const ' : '*mut ') . $made;
    return $made if $rest eq '*';
    return ($rest =~ /const/ ? '*const ' : '*mut ') . $made;
}

sub doc {
    my ($text, $indent) = @_;
    return '' if !defined $text || $text eq '';
    return join '', map { my $line = "$indent/// $_"; $line =~ s/\s+$//; "$line\n" } split /\n/, $text =~ s/([<>\[\]])/\\$1/gr;
}

sub params {
    my ($function) = @_;
    return join '', map {"        $_->{name}: " . type_of($_->{type}) . ",\n"} @{$function->{params}};
}

sub result { my ($function) = @_; return $function->{returns}{type} eq 'void' ? '' : ' -> ' . type_of($function->{returns}{type}) }

# One item on each line, in rustfmt's format, which then leaves these files alone.
sub header { return "// SPDX-License-Identifier: Apache-2.0\n// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.\n" }

# A module for each public header, by the path below cohort-sys.
sub declarations {
    my ($abi) = @_;
    my (%made, %functions);
    my $to = sub { my ($item, $text) = @_; $made{($item->{header} // 'types.h') =~ s/\.h$//r} .= $text };
    $to->({}, "\n/// The version of the library that this was made for.\npub const COHORT_VERSION: &str = \"$abi->{version}\";\n/// Yes and no: 1 and 0.\npub type cohort_bool = i32;\n");
    $to->({}, doc($_->{doc}, '') . "pub const $_->{name}: i32 = $_->{value};\n") for @{$abi->{limits}};
    for my $family (@{$abi->{families}}) {
        my $text = "\n" . doc($family->{doc}, '') . "pub type $family->{name} = i32;\n";
        $text .= doc($_->{doc}, '') . "pub const $_->{name}: $family->{name} = $_->{value};\n" for @{$family->{values}};
        $to->($family, $text);
    }
    for my $handle (@{$abi->{handles}}) {
        $to->({}, "\n" . doc($handle->{doc}, '') . "#[repr(C)]\npub struct $handle->{name} {\n    _private: [u8; 0],\n}\n");
    }
    for my $c (@{$abi->{callbacks}}) {
        $to->($c, "\n" . doc($c->{doc}, '') . "pub type $c->{name} = Option<\n    unsafe extern \"C\" fn(\n" . params($c) . '    )' . result($c) . ",\n>;\n");
    }
    for my $s (@{$abi->{structs}}) {
        my $text = "\n" . doc($s->{doc}, '') . "#[repr(C)]\n#[derive(Clone, Copy)]\npub struct $s->{name} {\n";
        $text .= doc($_->{doc}, '    ') . "    pub $_->{name}: " . type_of($_->{type}) . ",\n" for @{$s->{fields}};
        $to->($s, "$text}\n");
    }
    for my $f (@{$abi->{functions}}) {
        my $params = join "\n", map { my $said = AbiFiles::param_doc($_); $said eq '' ? () : "- `$_->{name}`: $said" } @{$f->{params}};
        my $doc = join "\n", grep { $_ ne '' } $f->{doc}, $params eq '' ? '' : "\n$params", $f->{returns_doc} ? "\nReturns: $f->{returns_doc}" : '';
        $functions{$f->{header} =~ s/\.h$//r} .= doc($doc, '    ') . "    pub fn $f->{name}(\n" . params($f) . '    )' . result($f) . ";\n";
    }
    $made{$_} .= "\nextern \"C\" {\n$functions{$_}}\n" for keys %functions;
    my %files = map { ("src/abi/$_.rs" => module($made{$_})) } keys %made;
    $files{'src/abi/mod.rs'} = header() . "//! A module for each header of the C interface.\n\n"
        . join '', map {"mod $_;\npub use $_\::*;\n"} sort keys %made;
    $files{'tests/layout.rs'} = layout($abi);
    $files{'tests/sweep.rs'} = sweep($abi);
    return %files;
}

# A module with the imports that it needs.
sub module {
    my ($text) = @_;
    my @plain = grep { $text =~ /\b$_\b/ } qw(c_char c_void);
    my $made = header() . "\n";
    my $foreign = $text;
    $foreign =~ s{^\s*///.*$}{}mg;
    my %own = map { $_ => 1 } $foreign =~ /^pub (?:type|struct|const) (\w+)/mg;
    $made .= "use super::*;\n" if grep { !$own{$_} } $foreign =~ /(?<!fn )\b(cohort_\w+)\b/g;
    $made .= 'use std::os::raw::' . (@plain > 1 ? '{' . join(', ', @plain) . '}' : $plain[0]) . ";\n" if @plain;
    return $made . $text;
}

# Sizes and offsets as the C compiler has them on 64-bit systems.
sub layout {
    my ($abi) = @_;
    my $made = header() . "//! Structs are laid out as in C, on 64-bit systems.\n#![cfg_attr(rustfmt, rustfmt_skip)]\nuse cohort_sys::*;\n\n#[test]\nfn structs_are_laid_out_as_in_c() {\n";
    for my $s (@{$abi->{structs}}) {
        $made .= "    assert_eq!(std::mem::size_of::<$s->{name}>(), $s->{bytes});\n"
            . "    let zero: $s->{name} = unsafe { std::mem::zeroed() };\n    let start = &zero as *const _ as usize;\n";
        $made .= "    assert_eq!(&zero.$_->{name} as *const _ as usize - start, $_->{offset});\n" for @{$s->{fields}};
    }
    return "$made}\n";
}

# Bad input: every function with NULL, and every function that takes handles with addresses that are not handles.
sub sweep {
    my ($abi) = @_;
    my %range = map { my @values = sort { $a <=> $b } map { $_->{value} } @{$_->{values}}; $_->{name} => "$values[0]..=$values[-1]" } @{$abi->{families}};
    my $nulls = join '', map { seen($_, \&null_value, \%range) } @{$abi->{functions}};
    my @takers = grep { grep { wrong_handle($_) } @{$_->{params}} } @{$abi->{functions}};
    my $strays = join '', map { seen($_, \&stray_value, \%range) } @takers;
    return header() . <<'HEAD' . $nulls . <<'BETWEEN' . $strays . <<'TAIL';
//! Bad input is refused, or gives what the headers say; it is never read or freed as if it were valid.
#![cfg_attr(rustfmt, rustfmt_skip)]
use cohort_sys::*;
use std::ffi::CStr;
use std::os::raw::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::Mutex;

unsafe fn text(name: &str, found: *const c_char) -> &str {
    assert!(!found.is_null(), "{} gives no text", name);
    CStr::from_ptr(found).to_str().unwrap_or_else(|why| panic!("{}: {}", name, why))
}

/// Success, or a sound error, which is freed: its class.
unsafe fn ended(name: &str, error: *mut cohort_error) -> cohort_error_class {
    let code = cohort_error_code(error);
    let message = text(name, cohort_error_message(error)).to_owned();
    cohort_error_free(error);
    assert_eq!(message.is_empty(), error.is_null(), "{}: {}", name, message);
    assert_eq!(code == COHORT_SUCCESS, error.is_null(), "{}: {}", name, message);
    assert!(code != COHORT_ERROR_INTERNAL && !message.contains('\n'), "{}: {}", name, message);
    code
}

unsafe fn refused(name: &str, error: *mut cohort_error) {
    assert_ne!(ended(name, error), COHORT_SUCCESS, "{} takes it", name);
}

/// One test at a time: at its end no handle lives but those that did before.
fn sweep(calls: impl FnOnce()) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(|failed| failed.into_inner());
    let before = unsafe { cohort_live_handles() };
    calls();
    assert_eq!(unsafe { cohort_live_handles() }, before);
}

fn new_descs() -> *mut cohort_descs {
    let mut descs = null_mut();
    assert_eq!(unsafe { ended("cohort_descs_create", cohort_descs_create(&mut descs)) }, COHORT_SUCCESS);
    descs
}

fn new_arrays() -> *mut cohort_arrays {
    let mut arrays = null_mut();
    assert_eq!(unsafe { ended("cohort_arrays_create", cohort_arrays_create(&mut arrays)) }, COHORT_SUCCESS);
    arrays
}

#[test]
fn null_is_refused_where_an_address_is_needed() {
    sweep(|| unsafe { nulls() });
}

#[test]
fn an_address_that_is_no_handle_is_refused() {
    let zeros = [0u64; 64];
    for address in [zeros.as_ptr() as usize, zeros.as_ptr() as usize + 1, 1, 8, usize::MAX / 2, usize::MAX] {
        sweep(|| unsafe { strays(&|_| address) });
    }
}

#[test]
fn what_lies_within_a_handle_is_refused() {
    sweep(|| {
        let descs = new_descs();
        for offset in [1, 4, 8] {
            unsafe { strays(&|_| descs as usize + offset) };
        }
        unsafe { cohort_descs_free(descs) };
    });
}

#[test]
fn a_freed_handle_is_refused() {
    sweep(|| {
        let (descs, arrays) = (new_descs(), new_arrays());
        unsafe {
            cohort_descs_free(descs);
            cohort_arrays_free(arrays);
            strays(&|_| descs as usize);
            strays(&|_| arrays as usize);
        }
    });
}

#[test]
fn a_handle_of_another_kind_is_refused_and_lives_on() {
    sweep(|| {
        let (descs, arrays) = (new_descs(), new_arrays());
        let mut num = 1;
        unsafe {
            strays(&|kind| if kind == "descs" { arrays as usize } else { descs as usize });
            assert_eq!(ended("cohort_descs_num", cohort_descs_num(descs, &mut num)), COHORT_SUCCESS);
            assert_eq!(num, 0);
            cohort_descs_free(descs);
            cohort_arrays_free(arrays);
        }
    });
}

/// Each function, given NULL for all addresses and 0 for all numbers.
unsafe fn nulls() {
HEAD
}

/// Each function that takes handles, given the address that `at` has for their kind, and for the rest what could be right.
unsafe fn strays(at: &dyn Fn(&str) -> usize) {
    let mut zeros = [0u64; 512];
    let memory = zeros.as_mut_ptr() as *mut c_void;
    let name = b"x\0".as_ptr() as *const c_char;
    let names = [name; 1];
BETWEEN
}
TAIL
}

# A statement that makes the call and checks its result.
sub seen {
    my ($f, $value, $range) = @_;
    my $call = "$f->{name}(" . join(', ', map { $value->($_) } @{$f->{params}}) . ')';
    my $kind = $f->{returns}{kind};
    my $needs = $value != \&null_value || grep { ($_->{nullable} // '') eq 'no' } @{$f->{params}};
    return '    ' . ($kind eq 'error' ? ($needs ? 'refused' : 'ended') . "(\"$f->{name}\", $call)"
        : $kind eq 'text' ? "text(\"$f->{name}\", $call)"
        : $kind eq 'bool' ? "assert_eq!($call, 0)"
        : $kind eq 'constant' ? "assert!(($range->{$f->{returns}{type}}).contains(&$call))" : $call) . ";\n";
}

sub null_value {
    my ($p) = @_;
    my $type = type_of($p->{type});
    return $p->{kind} eq 'callback' ? 'None' : $type =~ /^\*const/ ? 'null()' : $type =~ /^\*mut/ ? 'null_mut()' : $p->{kind} eq 'double' ? '0.0' : '0';
}

sub wrong_handle { my ($p) = @_; return $p->{kind} eq 'handle' && $p->{direction} eq 'in' }

# Lists have one entry. Structs that may be NULL are NULL, and so is all that the library would call or free.
sub stray_value {
    my ($p) = @_;
    my $list = defined $p->{list};
    if (wrong_handle($p)) {
        my $address = 'at("' . $p->{handle} =~ s/^cohort_//r . '")';
        return $list ? "[$address].as_ptr() as _" : "$address as _";
    }
    return $p->{kind} eq 'double' ? '1.0' : '1' if $p->{kind} ne 'callback' && $p->{type} !~ /\*$/;
    return $list && $p->{type} =~ /\*.*\*/ ? 'names.as_ptr()' : 'name' if $p->{kind} eq 'text' && $p->{direction} eq 'in';
    return null_value($p) if $p->{kind} =~ /^(?:callback|pointer)$/ && $p->{direction} eq 'in' || $p->{kind} eq 'struct' && ($p->{nullable} // '') eq 'yes';
    return 'memory as _';
}

1;
