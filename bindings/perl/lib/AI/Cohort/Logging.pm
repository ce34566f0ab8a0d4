# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::Logging;
use strict;
use warnings;
use AI::Cohort::FFI;
use Scalar::Util qw(blessed);

my @levels = qw(debug info warning error);

# A logger that writes warnings and errors to STDERR, and the others if its level is lower.
sub get_logger {
    my ($class, %given) = @_;
    return bless {level => $given{level} // 'warning'}, $class;
}

for my $level (0 .. $#levels) {
    no strict 'refs';
    *{$levels[$level]} = sub {
        my ($self, $format, @values) = @_;
        my $lowest = ref $self ? $self->{level} : 'info';
        return if $level < (grep { $levels[$_] eq $lowest } 0 .. $#levels)[0];
        my $text = @values ? sprintf $format, @values : $format;
        print STDERR "$levels[$level]: $text\n";
        return;
    };
}

# A logger is a function of level and text, or an object with methods of the levels' names.
sub _pass_on {
    my ($logger, $level, $text) = @_;
    return $logger->($level, $text) if ref $logger eq 'CODE';
    my $method = blessed $logger && ($logger->can($level) || $level eq 'warning' && $logger->can('warn'));
    return $method && $logger->$method($text);
}

# A function that passes the library's messages to a logger.
sub _sink {
    my ($logger) = @_;
    return sub {
        # A logger that dies must not make the library's call fail.
        eval { _pass_on($logger, $levels[$_[0]], AI::Cohort::FFI::decode_text($_[1])); 1 } or warn $@;
        return;
    };
}

# Sends the messages of the whole library, from a level on, to a logger; undef: to STDERR, as at the start. Other users of the
# library in this process are not affected.
my ($receiver, $receiver_id);

sub set_log {
    my ($class, $lowest, $logger) = @_;
    my %code = (map({ $levels[$_] => $_ } 0 .. $#levels), off => COHORT_LOG_OFF);
    my $level = $code{$lowest // 'warning'} // invalid("set_log: expected a level, found '$lowest'", 'lowest');
    my ($made, $id);
    if ($logger || $level != COHORT_LOG_WARNING) {
        my $sink = $logger ? _sink($logger) : sub { print STDERR 'cohort: ', AI::Cohort::FFI::decode_text($_[1]), "\n" if $_[0] >= COHORT_LOG_WARNING };
        (my $function, $id) = callback('(sint32,string,opaque)->void', $sink);
        cohort_log_create($level, $function, undef, $id, \$made);
    }
    cohort_log_free($receiver);
    forget_callback($receiver_id);
    ($receiver, $receiver_id) = ($made, $id);
    return;
}

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort::Logging - destinations of log messages

=head1 SYNOPSIS

    use AI::Cohort qw(mx);
    my $logger = mx->logging->get_logger(level => 'debug');
    $logger->info('%d batches', 12);
    mx->logging->set_log(info => sub { my ($level, $text) = @_; print "$level: $text\n" });
    mx->logging->set_log('warning', undef);

=head1 DESCRIPTION

A logger is an object with methods C<debug>, C<info>, C<warning> (or C<warn>) and C<error>, such as those of other logging
modules; messages of levels without a method are lost. Or it is a function of level and text.

=head1 METHODS

=head2 get_logger(level => 'warning')

Class method: a logger that writes messages of this level and above to STDERR.

=head2 debug, info, warning, error

Each takes a text, or a C<sprintf> format and its arguments.

=head2 set_log($lowest, $logger)

Class method: sends the messages of the whole library, from a level on, to a logger; groups and managers with loggers of their
own use those, and other users of the library in the process are not affected. C<undef>: to STDERR, as at the start. The level
C<off>: nowhere.

=cut
