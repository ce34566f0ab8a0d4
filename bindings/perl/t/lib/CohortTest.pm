# SPDX-License-Identifier: Apache-2.0
# Shared by the tests. A test is a subtest named by the sentence that it proves; finish() comes last.
package CohortTest;
use strict;
use warnings;
use AI::Cohort qw(mx);
use Exporter qw(import);
use Test::More;

our @EXPORT = qw(mx test finish fails near nd mlp regression batch);

sub test { my ($sentence, $code) = @_; subtest $sentence => $code }

sub finish {
    mx->waitall;    # queued work keeps wrapped memory alive
    is(mx->live_handles, 0, 'no handle is left');
    is(AI::Cohort::FFI::_num_callbacks(), 0, 'no function of Perl is held');
    done_testing;
}

# Checks that the code dies with an error of this class, whose message matches.
sub fails(&$$) {
    my ($code, $class, $pattern) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $lived = eval { $code->(); 1 };
    my $error = $@;
    return fail("expected an error of class $class, and there was none") if $lived;
    return fail("expected an error of class $class, found: $error") unless ref $error && $error->isa('AI::Cohort::Error');
    is($error->class, $class, "class of: $error") & like("$error", $pattern);
}

# Checks the numbers of an array, up to rounding.
sub near {
    my ($array, $expected, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @found = ref $array eq 'ARRAY' ? @$array : @{$array->aslist};
    my @wanted = map { ref ? map { ref ? @$_ : $_ } @$_ : $_ } @$expected;
    my $same = @found == @wanted && !grep { abs($found[$_] - $wanted[$_]) > 1e-5 * (1 + abs $wanted[$_]) } 0 .. $#wanted;
    ok($same, $name // 'numbers') or diag("expected @wanted\nfound    @found");
}

sub nd { AI::Cohort::NDArray->array(@_) }

# data (B, 4) -> fc (3) -> softmax
sub mlp {
    my $data = mx->sym->Variable('data');
    return mx->sym->SoftmaxOutput(mx->sym->FullyConnected($data, num_hidden => 3, name => 'fc'), name => 'softmax');
}

# out = data * w', without a loss: its gradient is the head gradient.
sub regression { mx->sym->FullyConnected(data => mx->sym->Variable('data'), num_hidden => 1, no_bias => 1, name => 'fc') }

sub batch { AI::Cohort::DataBatch->new(data => $_[0], label => $_[1]) }

1;
