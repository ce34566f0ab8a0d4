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
    my ($first) = @arguments;
    return $first->deepcopy if @arguments == 1 && blessed $first && $first->isa(__PACKAGE__);
    my %given = ($first // '') =~ /^device_/ ? settings_of('context', [qw(device_type device_id)], @arguments)
        : (device_type => $first, device_id => $arguments[1]);
    my $type = $given{device_type} // 'cpu';
    return $class->parse($type) if $type =~ /\(/ && !defined $given{device_id};
    return $class->parse("$type(" . ($given{device_id} // 0) . ')');
}

sub parse {
    my ($class, $text) = @_;
    my $bytes = pack 'll', 0, 0;
    cohort_context_parse($text, FFI::Platypus::Buffer::scalar_to_pointer($bytes));
    return $class->_from_bytes($bytes);
}

sub cpu { $_[0]->new('cpu', $_[1]) }
sub gpu { $_[0]->new('gpu', $_[1]) }

sub current_ctx { $mx::Context // $_[0]->cpu }

sub device_type    { $_[0]{device_type} }
sub device_type_id { $type_code{$_[0]{device_type}} }
sub device_id      { $_[0]{device_id} }
sub deepcopy       { bless {%{$_[0]}}, ref $_[0] }

sub num_devices {
    my ($class, $type) = @_;
    cohort_num_devices($type_code{$type // ''} // 0, \my $num);
    return $num;
}

# Bytes of the device's memory that this process uses.
sub memory {
    my ($self) = @_;
    my $info = struct('cohort_device_memory_info');
    cohort_device_memory($self->_pointer_to($self), $info->{pointer});
    my %memory;
    (undef, @memory{qw(used peak cached limit)}) = unpack 'J*', ${$info->{bytes}};
    return \%memory;
}

sub reset_peak_memory { cohort_device_reset_peak_memory($_[0]->_pointer_to($_[0])) }

sub limit_memory {
    my ($self, $bytes) = @_;
    invalid('limit_memory: expected 0 or more, found ' . ($bytes // 'undef'), 'bytes') if ($bytes // '-') =~ /^-/;
    cohort_device_limit_memory($self->_pointer_to($self), $bytes);
    return;
}

# The form for the library: a struct of two numbers, and lists of them.

sub _from_bytes {
    my ($class, $bytes) = @_;
    my ($type, $id) = unpack 'll', $bytes;
    return bless {device_type => $type_name{$type}, device_id => $id}, $class;
}

sub of {
    my ($class, $what) = @_;
    return blessed $what && $what->isa(__PACKAGE__) ? $what : $class->new($what);
}

my %lists;    # lists of one context each, so that pointers to them stay valid

# A list, from one context or a list.
sub all {
    my ($class, $given) = @_;
    return map { $class->of($_) } ref $given eq 'ARRAY' ? @$given : $given;
}

sub _pointer_to {
    my ($class, $context) = @_;
    $context //= $mx::Context // return undef;
    return ($lists{$context} //= $class->_list($context))->{pointer};
}

sub _list {
    my ($class, @contexts) = @_;
    my $bytes = join '', map { pack 'll', $_->device_type_id, $_->device_id } map { $class->of($_) } @contexts;
    return {bytes => \$bytes, pointer => @contexts ? FFI::Platypus::Buffer::scalar_to_pointer($bytes) : undef};
}

# Asks the library for a context: the last argument of a function.
sub _from_call {
    my ($class, $function, @arguments) = @_;
    my $bytes = pack 'll', 0, 0;
    $function->(@arguments, FFI::Platypus::Buffer::scalar_to_pointer($bytes));
    return $class->_from_bytes($bytes);
}

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort::Context - a device

=head1 SYNOPSIS

    use AI::Cohort qw(mx);
    my @contexts = (mx->cpu(0), mx->cpu(1), AI::Cohort::Context->new('cpu(2)'));
    print "on @contexts\n";
    print "the same\n" if $contexts[0] == mx->cpu;

=head1 DESCRIPTION

A type and a number. Every number from 0 names a CPU device, a separate worker. As text a context is C<cpu(0)>; two contexts are
C<==> if type and number are equal. Wherever a context is expected, such text is accepted.

=head1 METHODS

=head2 new($type = 'cpu', $id = 0), new(device_type => ..., device_id => ...), new($text), new($context)

A context. Types: C<cpu>, C<gpu>, C<cpu_pinned>, C<cpu_shared>. Whether the device exists is checked when it is first used.

=head2 parse($text)

Class method: reads C<gpu(1)>.

=head2 of($what)

Class method: a context, from a context or text.

=head2 all($what)

Class method: a list of contexts, from one value or a list of values that C<of> accepts.

=head2 cpu($id = 0), gpu($id = 0)

Class methods: contexts of these types.

=head2 current_ctx

Class method: the default context of arrays: C<$mx::Context>, or else C<cpu(0)>.

=head2 num_devices($type)

Class method: the number of GPUs, or of processors for the CPU types.

=head2 memory

The device memory that this process uses, a hash of bytes: C<used> now, C<peak>, C<cached> for later use beside that, and
C<limit> (0: none).

=head2 reset_peak_memory

Resets the peak to the present use.

=head2 limit_memory($bytes)

Limits the memory that this process uses; 0: no limit. An allocation beyond it is an error of class C<out_of_memory>.

=head2 device_type, device_type_id, device_id

The type as text and as a number, and the number of the device.

=head2 deepcopy

A copy.

=cut
