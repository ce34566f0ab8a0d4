# SPDX-License-Identifier: Apache-2.0
# Reads the public headers, and bindings/abi.notes, into the description of the ABI that bindings/README.md documents. A
# declaration that can be understood in two ways is an error until a note decides.
#
# Meaning comes from C types, from names (out_, num_, user_data, _free) and from tags in comments, never from English text:
#   @param NAME, NAME  TAG... TEXT   describes parameters; the text may be missing if there are tags
#     @nullable      NULL may be passed. Without the tag it may for user_data, options, a context, what _free() takes, and
#                    for a list whose count is 0
#     @null_entries  entries of this list may be NULL
#     @gives_null    the function may set this out parameter to NULL
#   @as F()          in the text of a parameter: tags and text of F's parameter of that name hold here, too. In the text of
#                    a function: the same for each parameter that has no @param. Written as "As F()" in what is generated
#   @return TEXT
package AbiHeaders;
use strict;
use warnings;

my %plain = (int32_t => 'int32', int64_t => 'int64', uint64_t => 'uint64', size_t => 'size', double => 'double', cohort_bool => 'bool');
my %c_name = (reverse(%plain), text => 'char');
my %bytes_of = (int32 => 4, bool => 4, constant => 4);    # all others take 8 on 64-bit systems

sub new {
    my ($class, $include, $notes) = @_;
    my $self = bless {families => [], handles => [], structs => [], callbacks => [], functions => [], macros => [], notes => {}}, $class;
    $self->read_notes($notes);
    $self->scan($_) for sort glob "$include/cohort/*.h";
    $self->finish;
    return $self;
}

sub description {
    my ($self) = @_;
    my %macro = map { $_->{name} => $_->{value} } @{$self->{macros}};
    return {
        version => $macro{COHORT_VERSION} =~ s/"//gr,
        soversion => $macro{COHORT_SOVERSION},
        limits => [grep { $_->{name} !~ /VERSION/ } @{$self->{macros}}],
        map { $_ => $self->{$_} } qw(families handles structs callbacks functions),
    };
}

# ---- notes -----------------------------------------------------------------------------------------------------------

# A line is a parameter or field, a key and a value: "cohort_executor_bind.grads count num_args".
sub read_notes {
    my ($self, $path) = @_;
    open my $file, '<', $path or die "$path: $!\n";
    while (my $line = <$file>) {
        next if $line =~ /^\s*(?:#|$)/;
        my ($place, $key, $value) = $line =~ /^(\S+)\s+(\S+)\s+(.*?)\s*$/ or die "$path:$.: what is '$line'?\n";
        die "$path:$.: there is a note on $place $key already\n" if $self->{notes}{$place}{$key};
        $self->{notes}{$place}{$key} = {value => $value, at => "$path:$."};
    }
}

sub note {
    my ($self, $place, $key) = @_;
    my $note = $self->{notes}{$place}{$key} or return undef;
    $note->{used} = 1;
    return $note->{value};
}

# ---- scanning ----------------------------------------------------------------------------------------------------------

sub scan {
    my ($self, $path) = @_;
    my ($header) = $path =~ m{([^/]+)$};
    return if $header eq 'cohort_functions.h';    # which is made from the description
    open my $file, '<', $path or die "$path: $!\n";
    $_ = do { local $/; <$file> };
    my $doc = '';
    until (/\G\s*\z/gc) {
        if (m{\G\s*/\*\*(.*?)\*/}gcs) { $doc = clean($1); next }
        if (m{\G\s*/\*.*?\*/}gcs) { next }
        if (/\G\s*#define (COHORT_\w+) +\(?("[^"\n]*"|-?\d+)\)?[ ]*\n/gc) {
            push @{$self->{macros}}, {name => $1, value => $2, doc => $doc};
        }
        elsif (/\G\s*#(?:[^\n]*\\\n)*[^\n]*/gc) { next }
        elsif (/\GCOHORT_(?:BEGIN|END)_DECLS\b/gc || /\G\s*COHORT_(?:BEGIN|END)_DECLS\b/gc) { next }
        elsif (/\G\s*enum \{(.*?)\};\s*typedef int32_t (\w+);/gcs) { $self->add_family($header, $doc, $2, $1) }
        elsif (/\G\s*typedef int32_t cohort_bool;/gc) { }
        elsif (/\G\s*typedef struct (\w+) \1;\s*(?:\/\*\s*(.*?)\s*\*\/)?/gcs) {
            push @{$self->{handles}}, {name => $1, doc => $2 // ''};
            next;
        }
        elsif (/\G\s*typedef struct (\w+) \{(.*?)\n\} \1;/gcs) { push @{$self->{structs}}, {name => $1, doc => $doc, header => $header, text => $2} }
        elsif (/\G\s*typedef (\w+) \(\*(\w+)\)\((.*?)\);/gcs) {
            push @{$self->{callbacks}}, {name => $2, returns => $1, split_doc($doc), header => $header, text => $3};
        }
        elsif (/\G\s*COHORT_API (?:COHORT_MUST_CHECK )?([^;(]*?)\(([^;]*)\);/gcs) {
            my ($returns, $name) = declaration($1);
            push @{$self->{functions}}, {name => $name, returns => $returns, split_doc($doc), header => $header, text => $2};
        }
        else { die "$path: what is '" . one_line(substr $_, pos // 0, 60) . "'?\n" }
        $doc = '';
    }
}

# A comment without its frame.
sub clean {
    my ($text) = @_;
    $text =~ s/^[ \t]*\*[ ]?//gm;
    $text =~ s/^\s+|\s+$//g;
    return $text;
}

sub one_line { my ($text) = @_; $text =~ s/\s*\n\s*/ /g; $text =~ s/^\s+|\s+$//g; return $text }

# The parts of a function's comment: its text, the parameters, the returned value, and the function in "@as".
sub split_doc {
    my ($doc) = @_;
    my ($text, @parts) = split /^(?=@(?:param|return)\b)/m, $doc;
    my (%params, $returns);
    for (@parts) {
        if (/^\@return\s+(.*)/s) {
            # Text after an empty line belongs to the function again.
            my ($first, $rest) = split /\n\n(?=\S)/, $1, 2;
            ($returns, $text) = ($first, defined $rest ? "$text\n$rest" : $text);
            next;
        }
        my ($names, $said) = /^\@param\s+(\w+(?:, \w+)*)\s+(.*)/s or die "what is '$_'?\n";
        ($said, my $rest) = split /\n\n(?=\S)/, $said, 2;
        $text .= "\n$rest" if defined $rest;
        my %tags;
        $tags{$1} = 1 while $said =~ s/^\@(nullable|null_entries|gives_null)\b\s*//;
        my ($plain, $as) = without_as(one_line($said), 'as for');
        $params{$_} = {doc => $plain, as => $as, tags => {%tags}} for split /, /, $names;
    }
    ($text, my $as) = without_as(clean($text // ''), 'as');
    return (doc => $text, as => $as, doc_of => \%params, defined $returns ? (returns_doc => no_tags(clean($returns))) : ());
}

# Replaces "@as F()" in a text by words. Returns the text and F.
sub without_as {
    my ($text, $words) = @_;
    my $as = $text =~ s/\@as (cohort_\w+)\(\)/$words $1()/ ? $1 : undef;
    $text =~ s/^as\b/As/;
    return (no_tags($text), $as);
}

sub no_tags {
    my ($text) = @_;
    die "what is the tag $1 in '$text'?\n" if $text =~ /(\@\w+)/;
    return $text;
}

sub declaration {
    my ($text) = @_;
    $text = one_line($text);
    $text =~ /^(.*?)\s*(\w+)$/ or die "what is '$text'?\n";
    return ($1, $2);
}

sub add_family {
    my ($self, $header, $doc, $name, $body) = @_;
    my @values;
    while ($body =~ m{(COHORT_\w+) = (-?\d+),?\s*(?:/\*\s*(.*?)\s*\*/)?}gs) {
        push @values, {name => $1, value => $2, doc => one_line($3 // '')};
    }
    push @{$self->{families}}, {name => $name, header => $header, doc => $doc, values => \@values};
}

# ---- what the declarations mean --------------------------------------------------------------------------------------

sub finish {
    my ($self) = @_;
    $self->{kind_of} = {
        map({ $_->{name} => 'constant' } @{$self->{families}}), map({ $_->{name} => 'handle' } @{$self->{handles}}),
        map({ $_->{name} => 'struct' } @{$self->{structs}}), map({ $_->{name} => 'callback' } @{$self->{callbacks}}), %plain,
    };
    my %by_name = map { $_->{name} => $_ } @{$self->{functions}};
    for my $handle (@{$self->{handles}}) {
        $handle->{free} = "$handle->{name}_free";
        die "there is no $handle->{free}\n" unless $by_name{$handle->{free}};
    }
    for my $function (@{$self->{functions}}, @{$self->{callbacks}}) {
        for my $name (sort keys %{$function->{doc_of}}) {
            my $own = $function->{doc_of}{$name};
            my $as = delete $own->{as} // next;
            my $other = $by_name{$as} && $by_name{$as}{doc_of}{$name} or die "$function->{name}.$name: $as() describes no $name\n";
            $own->{doc} = join ' ', grep { $_ ne '' } $own->{doc}, $other->{doc};
            $own->{tags} = {%{$own->{tags}}, %{$other->{tags}}};
        }
    }
    for my $function (@{$self->{functions}}, @{$self->{callbacks}}) {
        my $as = delete $function->{as} // next;
        my $other = $by_name{$as} or die "$function->{name}: there is no $as()\n";
        my %mine = map { (declaration($_))[1] => 1 } split /,/, $function->{text};
        for (keys %{$other->{doc_of}}) { $function->{doc_of}{$_} //= $other->{doc_of}{$_} if $mine{$_} }
    }
    $self->read_fields($_) for @{$self->{structs}};
    $self->read_params($_) for @{$self->{callbacks}}, @{$self->{functions}};
    $self->read_result($_) for @{$self->{callbacks}}, @{$self->{functions}};
    for my $what (qw(families structs callbacks functions)) { @{$self->{$what}} = sort { $a->{name} cmp $b->{name} } @{$self->{$what}} }
    for my $place (sort keys %{$self->{notes}}) {
        for my $key (sort keys %{$self->{notes}{$place}}) {
            my $note = $self->{notes}{$place}{$key};
            die "$note->{at}: there is nothing at $place that needs a note on its $key\n" unless $note->{used};
        }
    }
}

# Kind, constness and pointer depth of a value, from its C type.
sub read_type {
    my ($self, $place, $type) = @_;
    my ($const, $base, $rest) = $type =~ /^(const )?(\w+) ?((?:\*|\*const \*)*)$/ or die "$place: what is '$type'?\n";
    my $depth = () = $rest =~ /\*/g;
    my %value = (type => $type, const => $const ? 1 : 0, depth => $depth, inner_const => $rest =~ /const/ ? 1 : 0);
    if ($base eq 'void' || $base eq 'char') {
        $value{kind} = $base eq 'char' ? 'text' : 'bytes';
    }
    else {
        $value{kind} = $self->{kind_of}{$base} or die "$place: what is a '$base'?\n";
        $value{$value{kind} eq 'constant' ? 'family' : $value{kind}} = $base if $value{kind} =~ /^(?:constant|handle|struct|callback)$/;
    }
    return \%value;
}

# The count of a list, undef if a value is no list. A note gives it, or a parameter of its own (num_NAME, capacity, bytes),
# or the next count after a run of lists without counts of their own.
sub read_count {
    my ($self, $place, $value, $all, $i) = @_;
    my $count = $self->note($place, 'count');
    return $count eq '1' ? undef : $count if defined $count;
    return undef if !$value->{depth} || $value->{kind} eq 'callback';
    my %names = map { $_->{name} => 1 } @$all;
    my ($stem) = $value->{name} =~ /^(?:out_)?(.*)$/;
    my $is_out = $value->{name} =~ /^out_/;
    if ($value->{depth} == 1 && $value->{kind} =~ /^(?:bytes|text)$/) {
        return $i < $#$all && $all->[$i + 1]{name} =~ /^(capacity|bytes)$/ ? $1 : undef;
    }
    if ($is_out) {
        return undef if $value->{depth} == 2;
        return $i < $#$all && $all->[$i + 1]{name} eq 'capacity' ? 'capacity' : undef;
    }
    return undef if $value->{kind} =~ /^(?:handle|struct)$/ && $value->{depth} == 1 && $value->{name} !~ /contexts$/;
    return "num_$stem" if $names{"num_$stem"};
    my @run;
    for my $next (@$all[$i .. $#$all]) {
        if ($next->{depth} && $next->{name} !~ /^out_/) { push @run, $next->{name}; next }
        if ($next->{name} =~ /^num_(\w+)$/) {
            my $of = $1;
            last if grep { $_->{name} eq $of } @$all;
            return $next->{name};
        }
        last;
    }
    die "$place: how many? There is no count that is clearly its own; a note has to say\n";
}

sub read_values {
    my ($self, $owner, @values) = @_;
    for my $i (0 .. $#values) {
        my $value = $values[$i];
        my $count = $self->read_count("$owner->{name}.$value->{name}", $value, \@values, $i);
        $value->{list} = $count if defined $count;
    }
    return @values;
}

sub read_params {
    my ($self, $owner) = @_;
    my $doc_of = delete $owner->{doc_of};
    my @params = map {
        my ($type, $name) = declaration($_);
        my $value = $self->read_type("$owner->{name}.$name", $type);
        my $described = delete $doc_of->{$name};
        @$value{qw(name doc tags)} = ($name, $described->{doc} // '', $described->{tags} // {});
        $value;
    } grep { !/^\s*void\s*$/ } split /,/, delete $owner->{text};
    if (my @unknown = sort keys %$doc_of) { die "$owner->{name}: its comment tells of @unknown, which it does not take\n" }
    $self->read_direction($owner, $_) for @params;
    @params = $self->read_values($owner, @params);
    $self->read_null($owner, $_) for @params;
    $self->read_owner($owner, $_, \@params) for @params;
    $owner->{params} = [map { $self->finished($owner, $_) } @params];
}

sub read_direction {
    my ($self, $owner, $value) = @_;
    my ($name, $place) = ($value->{name}, "$owner->{name}.$value->{name}");
    my $writes = $value->{depth} && !$value->{const} && !$value->{inner_const} && ($value->{kind} ne 'handle' || $value->{depth} == 2)
        && $name !~ /^(?:\w+_)?user_data$/ || $value->{depth} == 2 && !$value->{inner_const};
    my $noted = $self->note($place, 'direction');
    my $said = $noted // ($name =~ /^out_/ ? 'out' : 'in');
    if (!defined $noted) {
        die "$place: it can be written, but is not called out_; a note has to say\n" if $writes && $said eq 'in' && $owner->{name} !~ /_options_init$/;
        die "$place: it is called out_, but cannot be written\n" if !$writes && $said eq 'out';
        $said = 'out' if $owner->{name} =~ /_options_init$/ && $value->{depth};
        $said = 'inout' if $said eq 'out' && $value->{kind} eq 'struct' && $value->{depth} == 1 && $self->has_size($value->{struct})
            && $owner->{name} !~ /_options_init$/;
    }
    $value->{direction} = $said;
}

sub has_size {
    my ($self, $struct) = @_;
    my ($those) = grep { $_->{name} eq $struct } @{$self->{structs}};
    return $those->{fields} && $those->{fields}[0]{name} eq 'struct_size';
}

sub read_null {
    my ($self, $owner, $value) = @_;
    my ($place, $tags, $in) = ("$owner->{name}.$value->{name}", $value->{tags}, $value->{direction} eq 'in');
    my $points = $value->{depth} || $value->{kind} eq 'callback';
    die "$place: \@nullable, but it is no pointer\n" if $tags->{nullable} && !$points;
    die "$place: \@gives_null, but no pointer comes out of it\n" if $tags->{gives_null} && ($in || $value->{depth} < 2);
    die "$place: \@null_entries, but it is no list of handles\n" if $tags->{null_entries} && !(defined $value->{list} && $value->{kind} eq 'handle');
    $value->{$_} = 1 for grep { $tags->{$_} } qw(null_entries gives_null);
    return unless $points;
    my $may = $tags->{nullable} || $in && $self->may_be_null_everywhere($owner, $value);
    my $empty = $in && defined $value->{list} && $value->{list} =~ /^num_/;
    $value->{nullable} = $may ? 'yes' : $empty ? 'if_empty' : 'no';
}

# The rules of cohort.h for all functions. Callbacks always get a context.
sub may_be_null_everywhere {
    my ($self, $owner, $value) = @_;
    return 1 if $value->{name} =~ /user_data$/ || $owner->{name} =~ /_free$/;
    return 0 if $value->{kind} ne 'struct' || defined $value->{list};
    return $value->{struct} =~ /_options$/ || $value->{struct} eq 'cohort_context' && $owner->{name} !~ /_fn$/;
}

# The owner of a value, unless it is the caller's all the time.
sub read_owner {
    my ($self, $owner, $value, $all) = @_;
    my $noted = $self->note("$owner->{name}.$value->{name}", 'ownership');
    return $value->{ownership} = $noted if defined $noted;
    my $from_library = $owner->{name} =~ /_fn$/;
    return if !$value->{depth};
    if ($from_library) { $value->{ownership} = 'lent' if $value->{direction} eq 'in' && $value->{name} ne 'user_data' }
    elsif ($value->{direction} eq 'out' && $value->{kind} eq 'handle') { $value->{ownership} = 'owned' }
    elsif ($value->{direction} eq 'out' && $value->{depth} == 2) {
        die "$owner->{name}.$value->{name}: whose is it? A note has to say\n" if $value->{kind} eq 'bytes';
        my ($source) = grep { $_->{kind} eq 'handle' && $_->{direction} eq 'in' } @$all;
        $value->{ownership} = 'borrowed until ' . ($source ? "$source->{name} is changed or freed" : 'the process ends');
    }
}

sub read_result {
    my ($self, $owner) = @_;
    my $type = delete $owner->{returns};
    if ($owner->{name} =~ /_fn$/) {
        $owner->{returns} = {type => $type, kind => $type eq 'void' ? 'nothing' : $self->read_type($owner->{name}, $type)->{kind}};
        return;
    }
    return $owner->{returns} = {type => $type, kind => 'error', ownership => 'owned'} if $type eq 'cohort_error *';
    return $owner->{returns} = {type => $type, kind => 'nothing'} if $type eq 'void';
    my $value = $self->read_type("$owner->{name}: result", $type);
    $owner->{returns} = {type => $type, kind => $value->{kind}};
    $owner->{returns}{family} = $value->{family} if $value->{family};
    return if $value->{kind} ne 'text';
    my ($source) = grep { $_->{kind} eq 'handle' } @{$owner->{params}};
    $owner->{returns}{ownership} = 'borrowed until ' . ($source ? "$source->{name} is changed or freed" : 'the process ends');
}

sub read_fields {
    my ($self, $struct) = @_;
    my @fields;
    my $text = delete $struct->{text};
    # A comment with an empty line after it is about several fields. One right over a field, or after it, is about the field.
    while ($text =~ m{\G\s*(?:/\*(?:(?!\*/).)*\*/[ \t]*\n[ \t]*\n\s*)*(?:/\*((?:(?!\*/).)*)\*/\s*)?([^;/]+);(?:[ \t]*/\*(.*?)\*/)?}gcs) {
        my ($over, $behind) = ($1, $3);
        my ($type, $name) = declaration($2);
        my $value = $self->read_type("$struct->{name}.$name", $type);
        @$value{qw(name doc direction)} = ($name, no_tags(join ' ', map { one_line(clean($_)) } grep {defined} $over, $behind), 'in');
        push @fields, $value;
    }
    die "$struct->{name}: what is '" . substr($text, pos $text // 0) . "'?\n" if substr($text, pos $text // 0) =~ /\S/;
    @fields = $self->read_values($struct, @fields);
    my ($offset, $widest) = (0, 4);
    for my $field (@fields) {
        my $bytes = $field->{depth} ? 8 : $bytes_of{$field->{kind}} // 8;
        $offset = int(($offset + $bytes - 1) / $bytes) * $bytes;
        @$field{qw(offset bytes)} = ($offset, $bytes);
        $offset += $bytes;
        $widest = $bytes if $bytes > $widest;
    }
    $struct->{bytes} = int(($offset + $widest - 1) / $widest) * $widest;
    $struct->{fields} = [map { $self->finished($struct, $_) } @fields];
}

# The keys of a value in the description. Keys that say nothing are left out; the C type follows from the others.
sub finished {
    my ($self, $owner, $value) = @_;
    my $place = "$owner->{name}.$value->{name}";
    $value->{kind} = 'pointer' if $value->{name} =~ /user_data$/ || $value->{kind} eq 'bytes' && ($value->{depth} == 2 || !defined $value->{list});
    my $made = c_type($value);
    die "$place: understood as $made, but it is $value->{type}\n" if $made ne $value->{type};
    my %kept = map { $_ => $value->{$_} } grep { defined $value->{$_} }
        qw(name type kind family handle struct callback direction list null_entries nullable gives_null ownership offset bytes doc);
    $kept{const} = 1 if $value->{kind} eq 'handle' && $value->{const};
    delete $kept{direction} if exists $kept{offset};
    delete $kept{doc} if $kept{doc} eq '';
    return \%kept;
}

# The C type that follows from the other keys. It has to be the one in the header.
sub c_type {
    my ($value) = @_;
    my ($kind, $out, $list) = ($value->{kind}, $value->{direction} ne 'in', defined $value->{list});
    my $base = $value->{family} // $value->{handle} // $value->{struct} // $value->{callback} // $c_name{$kind} // 'void';
    return $base if $kind eq 'callback';
    my $const = $value->{const} ? 'const ' : '';
    return $out ? 'void **' : "${const}void *" if $kind eq 'pointer';
    return $out ? 'void *' : 'const void *' if $kind eq 'bytes';
    return $out ? ($list ? 'char *' : 'const char **') : ($list && $value->{list} ne 'bytes' ? 'const char *const *' : 'const char *') if $kind eq 'text';
    return $out ? "$base **" : $list ? "$base *const *" : "$const$base *" if $kind eq 'handle';
    return $out ? "$base *" : "const $base *" if $kind eq 'struct';
    return "$base *" if $out;
    return $list || $value->{depth} ? "const $base *" : $base;
}

1;
