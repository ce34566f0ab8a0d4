# SPDX-License-Identifier: Apache-2.0
# Generates the files for C, Perl and Python from the description of the ABI. Each function returns the text of a file.
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

# JSON with a line for each parameter, field and constant.
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

# Tags and text of a parameter in words, "" if there are none.
sub param_doc {
    my ($p) = @_;
    my @tags = (($p->{nullable} // '') eq 'yes' ? 'may be NULL' : (), $p->{null_entries} ? 'entries may be NULL' : (),
        $p->{gives_null} ? 'NULL may come out' : ());
    return join ' ', @tags ? join(', ', @tags) . '.' : (), $p->{doc} // ();
}

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

# A program that compiles only if the headers agree with the description: types of functions, fields and callbacks,
# constants, sizes and offsets on 64-bit systems.
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

HEAD
    $made .= "# The version of the library that this was made for.\nour \$LIBRARY_VERSION = '$abi->{version}';\n\n" . <<'HEAD';
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

# Handles and returned text are addresses. So are lists, out parameters and structs, for which ctypes takes its arrays
# and references.
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
        # Text and handles arrive as addresses: only the callback knows how long they live.
        my @types = map { python_type($_) =~ s/^c_char_p$/c_void_p/r } @{$c->{params}};
        my $line = "$c->{name} = CFUNCTYPE(" . join(', ', $python{$c->{returns}{kind}}, @types) . ")\n";
        $line = "$c->{name} = CFUNCTYPE(\n    " . join(', ', $python{$c->{returns}{kind}}, @types) . "\n)\n" if length $line > 121;
        $made .= $line;
    }
    $made .= "\n\n" . python_struct($struct{$_}) for grep { $calls->($_) } @ordered;
    return $made;
}

# The declarations for the loader of the library.
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

1;
