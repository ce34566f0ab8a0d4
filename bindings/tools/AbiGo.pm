# SPDX-License-Identifier: Apache-2.0
# Generates the files for Go from the description of the ABI. Each function returns the text of a file in gofmt's format.
package AbiGo;
use strict;
use warnings;

my %initials = (ndarray => 'NDArray', map { $_ => uc } qw(cpu gpu csr io));

sub camel_case { my ($name) = @_; return join '', map { $initials{$_} // ucfirst } split /_/, lc $name }
sub type_name { my ($name) = @_; return camel_case($name =~ s/^cohort_//r) }

sub header {
    my ($package) = @_;
    return "// SPDX-License-Identifier: Apache-2.0\n// Code generated from bindings/abi.json by bindings/tools/abi.pl. DO NOT EDIT.\n\npackage $package\n\n";
}

sub cgo { return "/*\n#include <cohort/cohort.h>\n*/\nimport \"C\"\n\n" }

# The common prefix of the names of a family. Errors drop ERROR_ as well.
sub prefix {
    my ($family) = @_;
    return qr/^COHORT_(?:ERROR_)?/ if $family->{name} eq 'cohort_error_class';
    my ($prefix) = map { /^(.*_)/ } $family->{values}[0]{name};
    for my $value (@{$family->{values}}) { $prefix =~ s/[^_]*_$// while index($value->{name}, $prefix) != 0 }
    return qr/^\Q$prefix\E/;
}

# A column of "name type = value", as gofmt aligns it.
sub aligned {
    my (@rows) = @_;
    my ($width) = sort { $b <=> $a } map { length $_->[0] } @rows;
    return join '', map { sprintf "\t%-*s %s\n", $width, @$_ } @rows;
}

sub constants {
    my ($abi) = @_;
    my $made = header('cohort') . "import \"strconv\"\n\n// Version is that of the library which this was made for.\nconst Version = \"$abi->{version}\"\n\n";
    $made .= "// Limits.\nconst (\n" . aligned(map { [camel_case($_->{name} =~ s/^COHORT_//r), "= $_->{value}"] } @{$abi->{limits}}) . ")\n";
    for my $family (@{$abi->{families}}) {
        my ($type, $prefix) = (type_name($family->{name}), prefix($family));
        my ($doc) = split /(?<=[.:])\s|\n\n/, $family->{doc};
        my @names = map { [$type . camel_case($_->{name} =~ s/$prefix//r), $_] } @{$family->{values}};
        $made .= "\n// $type: " . lcfirst($doc =~ s/\s*\n\s*/ /gr) . "\ntype $type int32\n\n// Values of $type.\nconst (\n"
            . aligned(map { [$_->[0], "$type = $_->[1]{value}"] } @names) . ")\n\n";
        $made .= "// String gives the name of the constant, without what all have in common.\nfunc (v $type) String() string {\n\tswitch v {\n"
            . join('', map { "\tcase $_->[0]:\n\t\treturn \"" . lc($_->[1]{name} =~ s/$prefix//r =~ s/_/ /gr) . "\"\n" } @names)
            . "\t}\n\treturn \"$type(\" + strconv.Itoa(int(v)) + \")\"\n}\n";
    }
    return $made;
}

# For each kind of handle a function that frees it; for handles in lists a function that makes such a list in C's memory.
sub lists {
    my ($abi) = @_;
    my %listed;
    for my $p (map { @{$_->{params}} } @{$abi->{functions}}) { $listed{$p->{handle}} = 1 if $p->{kind} eq 'handle' && defined $p->{list} }
    my $made = header('cohort') . cgo() . "import \"unsafe\"\n";
    for my $handle (grep { $_->{name} ne 'cohort_error' } @{$abi->{handles}}) {
        my ($name, $type) = ($handle->{name}, type_name($handle->{name}));
        $made .= "\nfunc free$type(ptr unsafe.Pointer) { C.$name\_free((*C.$name)(ptr)) }\n";
        next unless $listed{$name};
        $made .= <<"GO";

// list$type keeps the objects from being freed for as long as the scratch lives. Where nil is allowed it is NULL.
func (s *scratch) list$type(from []*$type, nullable bool, what string) (**C.$name, C.size_t) {
@{[$name eq 'cohort_symbol' ? "\ts.readSymbols()\n" : '']}	return listIn(s, from, func(one *$type) *C.$name {
		if one == nil {
			if !nullable {
				s.pin(nil, what)
			}
			return nil
		}
		return (*C.$name)(s.pin(&one.handle, what))
	}), C.size_t(len(from))
}
GO
    }
    return $made;
}

# Each function that needs an address, called with NULL for all of them.
sub nulls {
    my ($abi) = @_;
    my $made = header('nulls') =~ s/^package/\/\/ Package nulls calls each function of the C interface that needs an address with NULL.\npackage/mr;
    $made .= <<'GO';
/*
#cgo pkg-config: cohort
#include <cohort/cohort.h>
*/
import "C"

// Classes gives the class of the error of each function by its name; 0 if there is none.
func Classes() map[string]int32 {
	found := map[string]int32{}
	see := func(name string, failed *C.cohort_error) {
		found[name] = int32(C.cohort_error_code(failed))
		C.cohort_error_free(failed)
	}
GO
    for my $f (@{$abi->{functions}}) {
        next unless $f->{returns}{kind} eq 'error' && grep { ($_->{nullable} // '') eq 'no' } @{$f->{params}};
        my @values = map { $_->{kind} eq 'callback' || $_->{type} =~ /\*$/ ? 'nil' : '0' } @{$f->{params}};
        $made .= "\tsee(\"$f->{name}\", C.$f->{name}(" . join(', ', @values) . "))\n";
    }
    return "$made\treturn found\n}\n";
}

1;
