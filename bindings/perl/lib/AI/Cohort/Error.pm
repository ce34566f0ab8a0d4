# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::Error;
use strict;
use warnings;
use AI::Cohort::FFI::Declarations ();

use overload '""' => sub { "$_[0]{message} at $_[0]{file} line $_[0]{line}.\n" }, bool => sub {1}, fallback => 1;

my (%code_of, %class_of);    # "shape" => 3, and back
for (grep {/^COHORT_ERROR_/} keys %AI::Cohort::FFI::Declarations::CONSTANTS) {
    my $code = $AI::Cohort::FFI::Declarations::CONSTANTS{$_};
    (my $class = lc) =~ s/^cohort_error_//;
    $code_of{$class} = $code;
    $class_of{$code} = $class;
}

sub code    { $_[0]{code} }
sub class   { $class_of{$_[0]{code}} }
sub message { $_[0]{message} }
sub subject { $_[0]{subject} }
sub file    { $_[0]{file} }
sub line    { $_[0]{line} }

sub throw {
    my ($class, $kind, $message, $subject) = @_;
    my $code = $code_of{$kind} // $kind;
    my $frame = 0;
    my ($package, $file, $line);
    do { ($package, $file, $line) = caller $frame++ } while defined $package && $package =~ /^AI::Cohort\b/;
    ($package, $file, $line) = caller unless defined $package;
    die bless {code => $code, message => $message, subject => $subject // '', file => $file, line => $line}, $class;
}

sub is {
    my ($self, $kind) = @_;
    return $self->{code} == ($code_of{$kind} // $kind);
}

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort::Error - the error of a failed call

=head1 SYNOPSIS

    eval { $group->forward($batch); 1 } or do {
        my $error = $@;
        die $error unless ref $error && $error->isa('AI::Cohort::Error');
        warn 'another batch size: ', $error->subject if $error->is('shape');
        warn $error;            # the message with the place, as any error of Perl
    };

=head1 DESCRIPTION

Every failed call of the library dies with such an object. As text it is its message with the place in the
program, as other errors of Perl: C<MESSAGE at FILE line N.> and a newline. The objects that the call worked on stay
usable, as they were before the call.

=head1 METHODS

=head2 code

The class of the error as a number, a C<COHORT_ERROR_> constant of the C interface.

=head2 class

The class as text: C<invalid_argument>, C<name>, C<shape>, C<dtype>, C<state>, C<unsupported>, C<device>, C<format>, C<io>,
C<out_of_memory>, C<execution> or C<internal>.

=head2 message

One line: what, where, expected and found.

=head2 subject

The operator, node, argument, array or file concerned; empty if there is none.

=head2 file, line

The place in the program that called this package.

=head2 is($class)

Whether the error is of this class, given as text or as a number.

=head2 throw($class, $message, $subject)

Class method: dies with a new error.

=head2 message and text

C<"$error"> is C<< $error->message >>, then the place and a newline; the object is always true.

=cut
