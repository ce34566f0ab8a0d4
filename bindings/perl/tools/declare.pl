#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Makes lib/AI/Cohort/FFI/Declarations.pm from the public headers: functions, constants, and structs of options.
#   declare.pl [--check] INCLUDE_DIR     --check: writes nothing, fails if the file is not what the headers say
use strict;
use warnings;
use File::Basename qw(dirname);

my $check   = @ARGV && $ARGV[0] eq '--check' && shift @ARGV;
my $include = shift @ARGV or die "usage: declare.pl [--check] INCLUDE_DIR\n";
my $target  = dirname(__FILE__) . '/../lib/AI/Cohort/FFI/Declarations.pm';

my %plain = (
    int32_t => 'sint32',
    int64_t => 'sint64',
    uint64_t => 'uint64',
    size_t  => 'size_t',
    double  => 'double',
    void    => 'void',
);

# Pointers to several elements that go out; others of plain types are one element.
my %out_list = map { $_ => 1 } qw(out_shape out_axes cohort_split_slices.out_begin cohort_split_slices.out_end);
# Pointers to one element that go in, where NULL says that there is none.
my %in_one = (value => 1);

sub type_of {
    my ($function, $type, $name) = @_;
    return 'opaque'   if $name =~ /^out_(?:data|text)$/ && $type =~ /^(?:char|void) \*$/;
    return 'string'   if $type eq 'const char *';
    return 'string[]' if $type eq 'const char *const *';
    return 'string*'  if $type eq 'const char **';
    return 'opaque[]' if $type =~ /^cohort_\w+ \*const \*$/;
    return 'opaque*'  if $type =~ /^(?:cohort_\w+|void) \*\*$/;
    return 'opaque'   if $type =~ /^(?:const )?(?:cohort_\w+|void) \*$/ || $type =~ /^cohort_\w+_fn$/;
    return $plain{$type} if $plain{$type};
    if ($type =~ /^(const )?(\w+) \*$/ && $plain{$2}) {
        return $plain{$2} . ($1 ? $in_one{$name} ? '*' : '[]' : $out_list{$name} || $out_list{"$function.$name"} ? '[out]' : '*');
    }
    die "declare.pl: what is '$type $name'?\n";
}

sub split_declaration {
    my ($text) = @_;
    $text =~ s/\s+/ /g;
    $text =~ /^\s*(.*?)\s*(\w+)\s*$/ or die "declare.pl: what is '$text'?\n";
    return ($1, $2);
}

my (%functions, %constants, %structs);
for my $path (sort glob "$include/cohort/*.h") {
    open my $file, '<', $path or die "$path: $!\n";
    my $text = do { local $/; <$file> };
    $text =~ s{/\*.*?\*/}{}gs;
    $constants{$1} = $2 while $text =~ /^#define (COHORT_(?:MAX_AXES|UNKNOWN_SHAPE)) \(?(-?\d+)\)?/gm;
    $text =~ s/^#.*(?:\\\n.*)*//gm;
    while ($text =~ /\benum \{(.*?)\}/gs) {
        my $body = $1;
        $constants{$1} = $2 while $body =~ /(COHORT_\w+) = (-?\d+)/g;
    }
    while ($text =~ /typedef struct (cohort_\w+) \{(.*?)\}/gs) {
        my ($struct, $body) = ($1, $2);
        for my $field (split /;/, $body) {
            next unless $field =~ /\S/;
            my ($type, $name) = split_declaration($field);
            push @{$structs{$struct}}, [$name, $plain{$type} || 'opaque'];
        }
    }
    while ($text =~ /COHORT_API (?:COHORT_MUST_CHECK )?([^;(]*?)\(([^;]*)\);/gs) {
        my ($head, $list) = ($1, $2);
        my ($result, $name) = split_declaration($head);
        my @types = map { type_of($name, split_declaration($_)) } grep { !/^\s*void\s*$/ } split /,/, $list;
        $functions{$name} = [$result eq 'cohort_error *' ? 'error' : type_of($name, $result, ''), @types];
    }
}

my $made = <<'HEAD';
# SPDX-License-Identifier: Apache-2.0
# Made from include/cohort by tools/declare.pl; not to be edited.
package AI::Cohort::FFI::Declarations;
use strict;
use warnings;

# name => [result, arguments...]; "error" is a cohort_error pointer that is to be thrown.
our %FUNCTIONS = (
HEAD
$made .= "    $_ => [qw(@{$functions{$_}})],\n" for sort keys %functions;
$made .= ");\n\nour %CONSTANTS = (\n";
$made .= "    $_ => $constants{$_},\n" for sort keys %constants;
$made .= ");\n\n# name => fields in order, each its type and its name.\nour %STRUCTS = (\n";
for my $name (sort keys %structs) {
    $made .= "    $name => [\n" . join('', map {"        $_->[1] => '$_->[0]',\n"} @{$structs{$name}}) . "    ],\n";
}
$made .= <<'TAIL';
);

1;

__END__

=head1 NAME

AI::Cohort::FFI::Declarations - the functions, constants and structs of Cohort's C headers

=head1 DESCRIPTION

Data for L<AI::Cohort::FFI>: C<%FUNCTIONS>, C<%CONSTANTS> and C<%STRUCTS>. F<tools/declare.pl> makes this file from the headers.

=cut
TAIL

my $present = '';
if (open my $file, '<', $target) { local $/; $present = <$file> }
if ($check) {
    die "$target is not what the headers in $include say: run tools/declare.pl $include\n" if $present ne $made;
    exit 0;
}
open my $file, '>', $target or die "$target: $!\n";
print $file $made or die "$target: $!\n";
close $file or die "$target: $!\n";
