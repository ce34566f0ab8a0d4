# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::Context;
use strict;
use warnings;
use AI::Cohort::FFI;
use Scalar::Util qw(blessed);

use overload
    '""' => sub { "$_[0]{device_type}($_[0]{device_id})" },
    '==' => sub { blessed $_[1] && $_[1]->isa(__PACKAGE__) && "$_[0]" eq "$_[1]" },
    '!=' => sub { !($_[0] == $_[1]) },
    bool => sub {1},
    fallback => 1;

my %type_code = (
    cpu => COHORT_DEVICE_CPU,
    gpu => COHORT_DEVICE_GPU,
    cpu_pinned => COHORT_DEVICE_CPU_PINNED,
    cpu_shared => COHORT_DEVICE_CPU_SHARED,
);
my %type_name = reverse %type_code;

sub new {
    my ($class, @arguments) = @_;
    @arguments = @{$arguments[0]}{qw(device_type device_id)} if @arguments == 1 && blessed $arguments[0] && $arguments[0]->isa(__PACKAGE__);
    my %given = @arguments > 2 || $arguments[0] && $arguments[0] =~ /^device_/ ? @arguments
        : (device_type => $arguments[0], device_id => $arguments[1]);
    my $type = $given{device_type} // 'cpu';
    return $class->parse($type) if $type =~ /\(/ && !defined $given{device_id};
    return $class->parse("$type(" . ($given{device_id} // 0) . ')');
}

sub parse {
    my ($class, $text) = @_;
    my $bytes = pack 'll', 0, 0;
    cohort_context_parse($text, FFI::Platypus::Buffer::scalar_to_pointer($bytes));
    return $class->from_bytes($bytes);
}

sub cpu { $_[0]->new('cpu', $_[1]) }
sub gpu { $_[0]->new('gpu', $_[1]) }

sub current_ctx { $_[0]->cpu }

sub device_type    { $_[0]{device_type} }
sub device_type_id { $type_code{$_[0]{device_type}} }
sub device_id      { $_[0]{device_id} }
sub deepcopy       { bless {%{$_[0]}}, ref $_[0] }

sub num_devices {
    my ($class, $type) = @_;
    cohort_num_devices($type_code{$type} // 0, \my $num);
    return $num;
}

# What crosses to the library: a struct of two numbers, and lists of them.

sub from_bytes {
    my ($class, $bytes) = @_;
    my ($type, $id) = unpack 'll', $bytes;
    return bless {device_type => $type_name{$type}, device_id => $id}, $class;
}

sub of {
    my ($class, $what) = @_;
    return blessed $what && $what->isa(__PACKAGE__) ? $what : $class->new($what);
}

my %lists;    # of one context each, so that pointers to them stay good

sub pointer_to {
    my ($class, $context) = @_;
    return undef unless defined $context;
    return ($lists{$context} //= $class->list($context))->{pointer};
}

sub list {
    my ($class, @contexts) = @_;
    my $bytes = join '', map { pack 'll', $_->device_type_id, $_->device_id } map { $class->of($_) } @contexts;
    return {bytes => \$bytes, pointer => @contexts ? FFI::Platypus::Buffer::scalar_to_pointer($bytes) : undef};
}

# Asks the library for a context: the last argument of a function.
sub from_call {
    my ($class, $function, @arguments) = @_;
    my $bytes = pack 'll', 0, 0;
    $function->(@arguments, FFI::Platypus::Buffer::scalar_to_pointer($bytes));
    return $class->from_bytes($bytes);
}

1;
