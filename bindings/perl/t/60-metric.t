# SPDX-License-Identifier: Apache-2.0
# Metrics: by name, composite, of a Perl function.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use CohortTest;
use Test::More;

my ($label_data, $pred_data) = ([0, 1, 1], [[0.7, 0.3], [0.4, 0.6], [0.8, 0.2]]);

sub value {
    my $metric = mx->metric->create(@_);
    $metric->update([nd($label_data)], [nd($pred_data)]);
    return $metric;
}

test 'metrics go by name and give name and value' => sub {    # MET-07, MET-10 to MET-17
    is_deeply([value('acc')->get], ['accuracy', 2 / 3]);
    near([value('ce')->value], [-(log(0.7) + log(0.6) + log(0.2)) / 3]);
    near([value('perplexity', ignore_label => undef)->value], [exp(-(log(0.7) + log(0.6) + log(0.2)) / 3)]);
    is(value('accuracy', name => 'right')->name, 'right');
    near([value('f1')->value], [2 / 3]);
    my $mae = mx->metric->create('mae');
    $mae->update(nd([1, 2]), nd([2, 4]));
    is_deeply([$mae->value, $mae->sum_metric, $mae->num_inst], [1.5, 1.5, 1]);
    $mae->reset_local;
    is_deeply([($mae->get_global)[1]], [1.5]);
    $mae->reset;
    cmp_ok($mae->value, '!=', $mae->value, 'not a number');
    is_deeply(value('acc')->get_name_value, [['accuracy', 2 / 3]]);
    fails { mx->metric->create('luck') } 'name', qr/luck/;
    fails { mx->metric->create('top_k_acc', top_k => 1) } 'invalid_argument', qr/top_k/;
    fails { value('acc')->update([nd([1])], []) } 'invalid_argument', qr/./;
};

test 'confidence has a value for each class and threshold' => sub {    # MET-19
    my $metric = value('confidence', num_classes => 2, confidence_thresholds => [0.5, 0.75]);
    my ($names, $values) = $metric->get;    # class 0 gets .7 and .8, one of which is right; class 1 gets .6
    is_deeply($names, ['P(v=0|Conf>0.5)', 'P(v=0|Conf>0.75)', 'P(v=1|Conf>0.5)', 'P(v=1|Conf>0.75)']);
    is_deeply([@$values[0 .. 2]], [1 / 2, 0, 1]);
    cmp_ok($values->[3], '!=', $values->[3], 'not a number');
};

test 'a composite metric has those of its children' => sub {    # MET-09
    my $both = mx->metric->create(['acc', mx->metric->create('ce')]);
    $both->update([nd($label_data)], [nd($pred_data)]);
    my ($names, $values) = $both->get;
    is_deeply($names, [qw(accuracy cross-entropy)]);
    near($values, [2 / 3, -(log(0.7) + log(0.6) + log(0.2)) / 3]);
    is($both->get_metric(1)->name, 'cross-entropy');
    is(scalar $both->children, 2);
    fails { $both->get_metric(2) } 'invalid_argument', qr/2/;
    fails { mx->metric->create('acc')->add('ce') } 'state', qr/./;
};

test 'a function makes a metric: of PDLs, or of arrays' => sub {    # MET-18
    my $worst = mx->metric->CustomMetric(sub { my ($label, $pred) = @_; ($label - $pred->slice('(1),:'))->abs->max }, name => 'worst');
    $worst->update([nd($label_data)], [nd($pred_data)]);
    is($worst->name, 'worst');
    near([$worst->value], [0.8]);
    my $mean = mx->metric->custom(sub { [$_[1]->sum->asscalar, $_[1]->size] }, arrays => 1);
    $mean->update([nd($label_data)], [nd($pred_data)]);
    near([$mean->value, $mean->num_inst], [0.5, 6]);
    my $family = mx->metric->create([$mean, 'acc', sub {2}]);
    undef $mean;
    $family->update([nd($label_data)], [nd($pred_data)]);
    near(($family->get)[1], [0.5, 2 / 3, 2]);
    fails { mx->metric->custom(sub {1})->update([nd([1])], [nd([1]), nd([2])]) } 'invalid_argument', qr/./;
    my $extra = mx->metric->custom(sub {3}, allow_extra_outputs => 1);
    $extra->update([nd([1])], [nd([1]), nd([2])]);
    is($extra->value, 3);
    my $dying = mx->metric->CustomMetric(eval_function => sub { die "cannot say\n" });
    eval { $dying->update([nd([1])], [nd([1])]); fail('it lived') };
    is($@, "cannot say\n");
    is($dying->num_inst, 0, 'nothing was added');
    fails { mx->metric->CustomMetric(name => 'none') } 'invalid_argument', qr/eval_function/;
};

test 'an error inside a function is that error' => sub {
    my $metric = mx->metric->custom(sub { nd([1, 2])->reshape([3]) });
    fails { $metric->update([nd([1])], [nd([1])]) } 'shape', qr/./;
};

test 'labels and outputs are chosen by name' => sub {    # MET-06
    my $metric = mx->metric->create('mae', output_names => ['b'], label_names => ['l']);
    $metric->update_dict({l => nd([1]), k => nd([5])}, {a => nd([9]), b => nd([3])});
    is($metric->value, 2);
    fails { $metric->update_dict({l => nd([1])}, {a => nd([9])}) } 'name', qr/b/;
};

finish();
