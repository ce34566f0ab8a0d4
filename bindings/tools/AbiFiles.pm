# SPDX-License-Identifier: Apache-2.0
# What is made of the description of the ABI for C, Perl, Python and Rust. Each function gives the whole text of a file.
package AbiFiles;
use strict;
use warnings;

# ---- the description itself ------------------------------------------------------------------------------------------

my @first = qw(name type kind value header version soversion limits families handles structs callbacks functions);
my %place = map { $first[$_] => $_ } 0 .. $#first;
my %last = (doc => 1, returns => 2, returns_doc => 3, params => 4, fields => 5, values => 6);

sub order { my ($key) = @_; return $place{$key} // ($last{$key} ? 100 + $last{$key} : 50) }

sub text_of {
    my ($value) = @_;
    return $value if $value =~ /^-?\d+\z/;
    $value =~ s/(["\\])/\\$1/g;
    $value =~ s/\n/\\n/g;
    return qq("$value");
}

# JSON, a parameter, field or constant on a line of its own.
sub json {
    my ($value, $indent) = @_;
    $indent //= '';
    return text_of($value) unless ref $value;
    my $inside = "$indent ";
    my @parts = ref $value eq 'ARRAY' ? map { json($_, $inside) } @$value
        : map { qq("$_": ) . json($value->{$_}, $inside) } sort { order($a) <=> order($b) || $a cmp $b } keys %$value;
    my ($open, $close) = ref $value eq 'ARRAY' ? ('[', ']') : ('{', '}');
    my $line = $open . join(', ', @parts) . $close;
    my @inside = ref $value eq 'ARRAY' ? @$value : values %$value;
    return $line if !@inside || !grep {ref} @inside;
    return "$open\n$inside" . join(",\n$inside", @parts) . "\n$indent$close";
}

sub description { my ($abi) = @_; return json($abi) . "\n" }

# ---- C -----------------------------------------------------------------------------------------------------------------

sub joined { my ($type, $name) = @_; return $type =~ /\*$/ ? "$type$name" : "$type $name" }
sub c_params { my ($function) = @_; return '(' . (join(', ', map { joined($_->{type}, $_->{name}) } @{$function->{params}}) || 'void') . ')' }

# The X-macro for hosts that load the library at run time.
sub c_functions {
    my ($abi) = @_;
    my @lines = map { "  X($_->{returns}{type}, $_->{name}, " . c_params($_) . ')' } @{$abi->{functions}};
    my $lines = join '', map {" \\\n$_"} @lines;
    return <<"C";
/* SPDX-License-Identifier: Apache-2.0 */
/**
 * \@file cohort_functions.h
 * All functions in one macro, for programs that load libcohort.so with dlopen() instead of linking to it. Made from
 * bindings/abi.json by bindings/tools/abi.pl; not to be edited. cohort.h does not include it.
 *
 *   #define DECLARE(result, name, parameters) static result(*p_##name) parameters;
 *   COHORT_FUNCTIONS(DECLARE)
 *   #define LOAD(result, name, parameters) *(void **)&p_##name = dlsym(library, #name);
 *   COHORT_FUNCTIONS(LOAD)
 */
#ifndef COHORT_COHORT_FUNCTIONS_H
#define COHORT_COHORT_FUNCTIONS_H

#include "cohort/cohort.h"

/* clang-format off */
/** X(result, name, (parameters)) for each function, by name. */
#define COHORT_FUNCTIONS(X)$lines
/* clang-format on */

#endif /* COHORT_COHORT_FUNCTIONS_H */
C
}

# A program that a C compiler takes only if the headers are what the description says: types of functions, fields and
# callbacks, constants, sizes and offsets on 64-bit systems.
sub c_proof {
    my ($abi) = @_;
    my @lines = ('/* Made from bindings/abi.json: compiles if the headers are what that says. */', '#include "cohort/cohort.h"', '#include <stddef.h>',
        '#define HOLDS(what, condition) typedef char holds_##what[(condition) ? 1 : -1]');
    for my $f (@{$abi->{functions}}) { push @lines, "$f->{returns}{type}" . ($f->{returns}{type} =~ /\*$/ ? '' : ' ') . "(*const p_$f->{name})" . c_params($f) . " = $f->{name};" }
    for my $c (@{$abi->{callbacks}}) {
        my $params = c_params($c);
        push @lines, "extern $c->{name} a_$c->{name};", "extern $c->{returns}{type} (*a_$c->{name})$params;";
    }
    for my $s (@{$abi->{structs}}) {
        push @lines, "HOLDS(size_of_$s->{name}, sizeof($s->{name}) == $s->{bytes});";
        for my $field (@{$s->{fields}}) {
            my $place = "$s->{name}, $field->{name}";
            push @lines, "HOLDS($s->{name}_$field->{name}, offsetof($place) == $field->{offset});",
                "extern $field->{type} t_$s->{name}_$field->{name};",
                "extern __typeof__((($s->{name} *)0)->$field->{name}) t_$s->{name}_$field->{name};";
        }
    }
    for my $family (@{$abi->{families}}) {
        push @lines, "HOLDS($family->{name}, sizeof($family->{name}) == 4);";
        push @lines, map {"HOLDS($_->{name}, $_->{name} == $_->{value});"} @{$family->{values}};
    }
    push @lines, map {"HOLDS($_->{name}, $_->{name} == $_->{value});"} @{$abi->{limits}};
    push @lines, "HOLDS(soversion, COHORT_SOVERSION == $abi->{soversion});", 'static const char version[] = COHORT_VERSION;',
        "HOLDS(length_of_version, sizeof(version) == sizeof(\"$abi->{version}\"));", 'int main(void) {', '  return version[0] == 0';
    push @lines, "    || p_$_->{name} == NULL" for @{$abi->{functions}};
    return join("\n", @lines) . ";\n}\n";
}

# ---- Perl --------------------------------------------------------------------------------------------------------------

my %perl = (int32 => 'sint32', bool => 'sint32', constant => 'sint32', int64 => 'sint64', uint64 => 'uint64', size => 'size_t', double => 'double',
    nothing => 'void', error => 'error');

sub perl_type {
    my ($p) = @_;
    my ($kind, $out, $list) = ($p->{kind}, $p->{direction} ne 'in', defined $p->{list});
    return 'string' . ($out ? '*' : $list ? '[]' : '') if $kind eq 'text' && !($list && $p->{list} =~ /^(?:bytes|capacity)$/);
    return $kind eq 'text' && !$out ? 'string' : 'opaque' if $kind eq 'text';
    return 'opaque' . ($out ? '*' : $list ? '[]' : '') if $kind eq 'handle' || $kind eq 'pointer';
    my $type = $perl{$kind} // return 'opaque';
    return $type . ($list ? $out ? '[out]' : '[]' : $out || $p->{type} =~ /\*$/ ? '*' : '');
}

sub perl_declarations {
    my ($abi) = @_;
    my $made = <<'HEAD';
# SPDX-License-Identifier: Apache-2.0
# Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package AI::Cohort::FFI::Declarations;
use strict;
use warnings;

# name => [result, arguments...]; "error" is a cohort_error pointer that is to be thrown.
our %FUNCTIONS = (
HEAD
    for my $f (@{$abi->{functions}}) {
        my $result = $f->{returns}{kind} eq 'text' ? 'string' : $perl{$f->{returns}{kind}};
        $made .= "    $f->{name} => [qw(@{[$result, map { perl_type($_) } @{$f->{params}}]})],\n";
    }
    my %constants = map { $_->{name} => $_->{value} } @{$abi->{limits}}, map { @{$_->{values}} } @{$abi->{families}};
    $made .= ");\n\nour %CONSTANTS = (\n" . join('', map {"    $_ => $constants{$_},\n"} sort keys %constants);
    $made .= ");\n\n# name => fields in order, each its type and its name.\nour %STRUCTS = (\n";
    for my $s (@{$abi->{structs}}) {
        $made .= "    $s->{name} => [\n"
            . join('', map { '        ' . ($_->{type} =~ /\*$/ ? 'opaque' : $perl{$_->{kind}} // 'opaque') . " => '$_->{name}',\n" } @{$s->{fields}}) . "    ],\n";
    }
    return $made . <<'TAIL';
);

1;

__END__

=head1 NAME

AI::Cohort::FFI::Declarations - the functions, constants and structs of Cohort's C headers

=head1 DESCRIPTION

Data for L<AI::Cohort::FFI>: C<%FUNCTIONS>, C<%CONSTANTS> and C<%STRUCTS>, made from the description of the C interface.

=cut
TAIL
}

# ---- Python ------------------------------------------------------------------------------------------------------------

my %python = (int32 => 'c_int32', bool => 'c_int32', constant => 'c_int32', int64 => 'c_int64', uint64 => 'c_uint64', size => 'c_size_t',
    double => 'c_double', nothing => 'None', error => 'c_void_p', text => 'c_char_p');

# Handles, and what comes out as text, are addresses; so are lists, out parameters and structs, for all of which ctypes
# takes its own arrays and references.
sub python_type {
    my ($p) = @_;
    my ($kind, $type) = ($p->{kind}, $p->{type});
    return $p->{callback} if $kind eq 'callback';
    my $base = $p->{struct} // $python{$kind} // 'c_void_p';
    return 'c_void_p' if $kind eq 'bytes' || $kind eq 'pointer' && $type !~ /\*\*$/ || $kind eq 'text' && $type eq 'char *';
    return 'c_char_p' if $kind eq 'text' && $type eq 'const char *';
    my $points = $kind eq 'handle' ? $type =~ /\*(?:const )?\*$/ : $type =~ /\*$/;
    return $points ? "POINTER($base)" : $base;
}

sub camel_case { my ($name) = @_; return join '', map {ucfirst} split /_/, $name =~ s/^cohort_//r }

sub python_family {
    my ($family) = @_;
    my ($prefix) = map { /^(.*_)/ } $family->{values}[0]{name};
    for my $value (@{$family->{values}}) { $prefix =~ s/[^_]*_$// while index($value->{name}, $prefix) != 0 }
    my ($first) = split /(?<=[.:])\s|\n\n/, $family->{doc};
    my $made = 'class ' . camel_case($family->{name}) . qq{(IntEnum):\n    """} . ($first =~ s/\s*\n\s*/ /gr) . qq{"""\n\n};
    return $made . join '', map { '    ' . substr($_->{name}, length $prefix) . " = $_->{value}\n" } @{$family->{values}};
}

sub python_struct {
    my ($s) = @_;
    my $fields = join '', map { qq{        ("$_->{name}", } . python_type($_) . "),\n" } @{$s->{fields}};
    return "class $s->{name}(Structure):\n    _fields_ = [\n$fields    ]\n";
}

sub python_declarations {
    my ($abi) = @_;
    my $made = <<"HEAD";
# SPDX-License-Identifier: Apache-2.0
# Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
"""The constants, structs and callbacks of Cohort's C interface; its functions are in _abi_functions.py."""

from __future__ import annotations

from ctypes import CFUNCTYPE, POINTER, Structure
from ctypes import c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from enum import IntEnum

VERSION = "$abi->{version}"
SOVERSION = $abi->{soversion}
HEAD
    $made .= "$_->{name} = $_->{value}\n" =~ s/^COHORT_//r for @{$abi->{limits}};
    $made .= "\n\n" . python_family($_) for @{$abi->{families}};
    my %struct = map { $_->{name} => $_ } @{$abi->{structs}};
    my $refers = sub { scalar grep { $_->{struct} } @{$struct{$_[0]}{fields}} };
    my $calls = sub { scalar grep { $_->{kind} eq 'callback' } @{$struct{$_[0]}{fields}} };
    my @ordered = sort { $refers->($a) <=> $refers->($b) || $a cmp $b } keys %struct;
    # Callbacks take structs, and structs have callbacks.
    $made .= "\n\n" . python_struct($struct{$_}) for grep { !$calls->($_) } @ordered;
    $made .= "\n\n";
    for my $c (@{$abi->{callbacks}}) {
        # Numbers and addresses: text and handles are made of them by who knows how long they live.
        my @types = map { python_type($_) =~ s/^c_char_p$/c_void_p/r } @{$c->{params}};
        my $line = "$c->{name} = CFUNCTYPE(" . join(', ', $python{$c->{returns}{kind}}, @types) . ")\n";
        $line = "$c->{name} = CFUNCTYPE(\n    " . join(', ', $python{$c->{returns}{kind}}, @types) . "\n)\n" if length $line > 121;
        $made .= $line;
    }
    $made .= "\n\n" . python_struct($struct{$_}) for grep { $calls->($_) } @ordered;
    return $made;
}

# What the loader declares on the library.
sub python_functions {
    my ($abi) = @_;
    my $made = <<"HEAD";
# SPDX-License-Identifier: Apache-2.0
# Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
"""The functions of Cohort's C interface by name: (result, arguments); a result of c_void_p is an error, None nothing."""

from __future__ import annotations

from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any, Dict, Tuple

HEAD
    my %used = map { $_ => 1 } grep {defined} map { ($_->{struct}, $_->{callback}) } map { @{$_->{params}} } @{$abi->{functions}};
    $made .= "from ._abi import (\n" . join('', map {"    $_,\n"} sort keys %used) . ")\n\n";
    $made .= "FUNCTIONS: Dict[str, Tuple[Any, Tuple[Any, ...]]] = {\n";
    for my $f (@{$abi->{functions}}) {
        my @types = map { python_type($_) } @{$f->{params}};
        my $list = @types == 1 ? "($types[0],)" : '(' . join(', ', @types) . ')';
        my $line = qq{    "$f->{name}": ($python{$f->{returns}{kind}}, $list),\n};
        $line = qq{    "$f->{name}": (\n        $python{$f->{returns}{kind}},\n        (\n} . join('', map {"            $_,\n"} @types) . "        ),\n    ),\n"
            if length $line > 120;
        $made .= $line;
    }
    return $made . "}\n";
}

# ---- Rust --------------------------------------------------------------------------------------------------------------

my %rust = (int32_t => 'i32', int64_t => 'i64', uint64_t => 'u64', size_t => 'usize', double => 'f64', char => 'c_char', void => 'c_void');

sub rust_type {
    my ($type) = @_;
    my ($const, $base, $rest) = $type =~ /^(const )?(\w+) ?((?:\*|\*const \*)*)$/;
    my $made = $rust{$base} // $base;
    return $made if $rest eq '';
    $made = ($const ? '*const ' : '*mut ') . $made;
    return $made if $rest eq '*';
    return ($rest =~ /const/ ? '*const ' : '*mut ') . $made;
}

sub rust_doc {
    my ($text, $indent) = @_;
    return '' if !defined $text || $text eq '';
    return join '', map { my $line = "$indent/// $_"; $line =~ s/\s+$//; "$line\n" } split /\n/, $text =~ s/([<>\[\]])/\\$1/gr;
}

sub rust_params {
    my ($function) = @_;
    return join '', map {"        $_->{name}: " . rust_type($_->{type}) . ",\n"} @{$function->{params}};
}

sub rust_result { my ($function) = @_; return $function->{returns}{type} eq 'void' ? '' : ' -> ' . rust_type($function->{returns}{type}) }

# One on a line, as rustfmt would have it: it leaves these files alone.
sub rust_header { return "// SPDX-License-Identifier: Apache-2.0\n// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.\n" }

# A module for each public header, by the path below cohort-sys.
sub rust_declarations {
    my ($abi) = @_;
    my (%made, %functions);
    my $to = sub { my ($item, $text) = @_; $made{($item->{header} // 'types.h') =~ s/\.h$//r} .= $text };
    $to->({}, "\n/// The version of the library that this was made for.\npub const COHORT_VERSION: &str = \"$abi->{version}\";\n/// Yes and no: 1 and 0.\npub type cohort_bool = i32;\n");
    $to->({}, rust_doc($_->{doc}, '') . "pub const $_->{name}: i32 = $_->{value};\n") for @{$abi->{limits}};
    for my $family (@{$abi->{families}}) {
        my $text = "\n" . rust_doc($family->{doc}, '') . "pub type $family->{name} = i32;\n";
        $text .= rust_doc($_->{doc}, '') . "pub const $_->{name}: $family->{name} = $_->{value};\n" for @{$family->{values}};
        $to->($family, $text);
    }
    for my $handle (@{$abi->{handles}}) {
        $to->({}, "\n" . rust_doc($handle->{doc}, '') . "#[repr(C)]\npub struct $handle->{name} {\n    _private: [u8; 0],\n}\n");
    }
    for my $c (@{$abi->{callbacks}}) {
        $to->($c, "\n" . rust_doc($c->{doc}, '') . "pub type $c->{name} = Option<\n    unsafe extern \"C\" fn(\n" . rust_params($c) . '    )' . rust_result($c) . ",\n>;\n");
    }
    for my $s (@{$abi->{structs}}) {
        my $text = "\n" . rust_doc($s->{doc}, '') . "#[repr(C)]\n#[derive(Clone, Copy)]\npub struct $s->{name} {\n";
        $text .= rust_doc($_->{doc}, '    ') . "    pub $_->{name}: " . rust_type($_->{type}) . ",\n" for @{$s->{fields}};
        $to->($s, "$text}\n");
    }
    for my $f (@{$abi->{functions}}) {
        my $doc = join "\n", grep { $_ ne '' } $f->{doc}, $f->{returns_doc} ? "\nReturns: $f->{returns_doc}" : '';
        $functions{$f->{header} =~ s/\.h$//r} .= rust_doc($doc, '    ') . "    pub fn $f->{name}(\n" . rust_params($f) . '    )' . rust_result($f) . ";\n";
    }
    $made{$_} .= "\nextern \"C\" {\n$functions{$_}}\n" for keys %functions;
    my %files = map { ("src/abi/$_.rs" => rust_module($made{$_})) } keys %made;
    $files{'src/abi/mod.rs'} = rust_header() . "//! A module for each header of the C interface.\n\n"
        . join '', map {"mod $_;\npub use $_\::*;\n"} sort keys %made;
    $files{'tests/layout.rs'} = rust_layout($abi);
    return %files;
}

# With the imports that it needs.
sub rust_module {
    my ($text) = @_;
    my @plain = grep { $text =~ /\b$_\b/ } qw(c_char c_void);
    my $made = rust_header() . "\n";
    my $foreign = $text;
    $foreign =~ s{^\s*///.*$}{}mg;
    my %own = map { $_ => 1 } $foreign =~ /^pub (?:type|struct|const) (\w+)/mg;
    $made .= "use super::*;\n" if grep { !$own{$_} } $foreign =~ /(?<!fn )\b(cohort_\w+)\b/g;
    $made .= 'use std::os::raw::' . (@plain > 1 ? '{' . join(', ', @plain) . '}' : $plain[0]) . ";\n" if @plain;
    return $made . $text;
}

# Sizes and offsets as the C compiler has them on 64-bit systems.
sub rust_layout {
    my ($abi) = @_;
    my $made = rust_header() . "//! Structs are laid out as in C, on 64-bit systems.\n#![cfg_attr(rustfmt, rustfmt_skip)]\nuse cohort_sys::*;\n\n#[test]\nfn structs_are_laid_out_as_in_c() {\n";
    for my $s (@{$abi->{structs}}) {
        $made .= "    assert_eq!(std::mem::size_of::<$s->{name}>(), $s->{bytes});\n"
            . "    let zero: $s->{name} = unsafe { std::mem::zeroed() };\n    let start = &zero as *const _ as usize;\n";
        $made .= "    assert_eq!(&zero.$_->{name} as *const _ as usize - start, $_->{offset});\n" for @{$s->{fields}};
    }
    return "$made}\n";
}

# A test that each function which needs an address refuses NULL for all of them, instead of reading there.
sub rust_nulls {
    my ($abi) = @_;
    my $made = rust_header() . "//! Each function that needs an address refuses NULL.\n#![cfg_attr(rustfmt, rustfmt_skip)]\nuse cohort_sys::*;\nuse std::ptr::{null, null_mut};\n\n"
        . "unsafe fn refused(name: &str, error: *mut cohort_error) {\n    assert!(!error.is_null(), \"{} takes NULL\", name);\n"
        . "    let code = cohort_error_code(error);\n    cohort_error_free(error);\n"
        . "    assert!(code != COHORT_SUCCESS && code != COHORT_ERROR_INTERNAL, \"{}: class {}\", name, code);\n}\n\n"
        . "#[test]\nfn null_is_refused() {\n    unsafe {\n";
    for my $f (@{$abi->{functions}}) {
        next unless $f->{returns}{kind} eq 'error' && grep { ($_->{nullable} // '') eq 'no' } @{$f->{params}};
        my @values = map {
            my $type = rust_type($_->{type});
            $_->{kind} eq 'callback' ? 'None' : $type =~ /^\*const/ ? 'null()' : $type =~ /^\*mut/ ? 'null_mut()' : $_->{kind} eq 'double' ? '0.0' : '0';
        } @{$f->{params}};
        $made .= "        refused(\"$f->{name}\", $f->{name}(" . join(', ', @values) . "));\n";
    }
    return "$made    }\n    assert_eq!(unsafe { cohort_live_handles() }, 0);\n}\n";
}

1;
