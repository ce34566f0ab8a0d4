# SPDX-License-Identifier: Apache-2.0
# Generates the files for Java (JNA) from the description of the ABI: a class of native methods for each public header,
# constants, structs, callbacks, and their tests. Pointers and sizes are 64-bit numbers; lists of numbers and out parameters
# are Java arrays.
package AbiJava;
use strict;
use warnings;
use AbiFiles;

my %plain = (constant => 'int', bool => 'int', int32 => 'int', int64 => 'long', uint64 => 'long', size => 'long', double => 'double',
    handle => 'long', pointer => 'long', error => 'long', nothing => 'void', text => 'String');

sub camel_case { my ($name) = @_; return join '', map {ucfirst} split /_/, $name =~ s/^cohort_//r =~ s/\.h$//r }
sub class_of { my ($header) = @_; return 'Cohort' . camel_case($header) }

# Lists of text are JNA's StringArray; text with a length, and text that is written, is byte[].
sub type_of {
    my ($p) = @_;
    my ($kind, $type) = @$p{qw(kind type)};
    return 'Callbacks.' . camel_case($p->{callback}) if $kind eq 'callback';
    return 'Structs.' . camel_case($p->{struct}) if $kind eq 'struct';
    return 'Buffer' if $kind eq 'bytes';
    if ($kind eq 'text') {
        return 'byte[]' if defined $p->{list} && $p->{list} =~ /^(?:bytes|capacity)$/;
        return $p->{direction} ne 'in' ? 'long[]' : defined $p->{list} ? 'Pointer' : 'String';
    }
    my $depth = () = $type =~ /\*/g;
    --$depth if $kind eq 'handle' || $kind eq 'pointer';
    return $plain{$kind} . ($depth > 0 ? '[]' : '');
}

# In structs and callbacks an address is a Pointer, except handles and user_data.
sub inner_type {
    my ($p) = @_;
    my $kind = $p->{kind};
    return 'Callbacks.' . camel_case($p->{callback}) if $kind eq 'callback';
    my $depth = () = $p->{type} =~ /\*/g;
    return $depth > 1 ? 'Pointer' : 'long' if $kind eq 'handle' || $kind eq 'pointer';
    return $depth ? 'Pointer' : $plain{$kind};
}

# A Javadoc comment with a @param tag for each parameter that has tags or text.
sub javadoc {
    my ($text, $indent, @params) = @_;
    return '' if !defined $text || $text !~ /\S/;
    my @lines = (split(/\n/, escaped($text)), map { my $said = AbiFiles::param_doc($_); $said eq '' ? () : "\@param $_->{name} " . escaped($said) } @params);
    return "$indent/** $lines[0] */\n" if @lines == 1 && length $lines[0] < 100;
    return "$indent/**\n" . join('', map { "$indent * $_" =~ s/\s+$//r . "\n" } @lines) . "$indent */\n";
}

sub escaped {
    my ($text) = @_;
    $text =~ s/&/&amp;/g;
    $text =~ s/</&lt;/g;
    $text =~ s/>/&gt;/g;
    $text =~ s/\@/&#64;/g;
    $text =~ s{\*/}{*&#47;}g;
    $text =~ s/\\u/&#92;u/g;
    return $text;
}

sub head {
    my ($package, @imports) = @_;
    return "// SPDX-License-Identifier: Apache-2.0\n// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.\npackage $package;\n\n"
        . (@imports ? join('', map {"import $_;\n"} @imports) . "\n" : '');
}

sub params_of { my ($f) = @_; return join ', ', map { type_of($_) . " $_->{name}" } @{$f->{params}} }

# Files by their path below bindings/scala/src/main/java/cohort/abi.
sub declarations {
    my ($abi) = @_;
    my (%functions, %made);
    push @{$functions{$_->{header}}}, $_ for @{$abi->{functions}};
    for my $header (keys %functions) {
        my $methods = '';
        for my $f (@{$functions{$header}}) {
            $methods .= "\n" . javadoc(join("\n", grep { ($_ // '') ne '' } $f->{doc}, $f->{returns_doc} ? "Returns: $f->{returns_doc}" : ''), '    ', @{$f->{params}})
                . "    public static native $plain{$f->{returns}{kind}} $f->{name}(" . params_of($f) . ");\n";
        }
        my @imports = ($methods =~ /\bPointer\b/ ? 'com.sun.jna.Pointer' : (), $methods =~ /\bBuffer\b/ ? 'java.nio.Buffer' : ());
        my $name = class_of($header);
        $made{$name} = head('cohort.abi', @imports) . "/** The functions of cohort/$header; errors are addresses of cohort_error, 0 is success. */\n"
            . "public final class $name {\n    private ${name}() {\n    }\n\n    static {\n        Loader.register($name.class);\n    }\n$methods}\n";
    }
    $made{Constants} = constants($abi);
    $made{Structs} = structs($abi);
    $made{Callbacks} = callbacks($abi);
    return map { ("$_.java" => $made{$_}) } keys %made;
}

sub constants {
    my ($abi) = @_;
    my $made = head('cohort.abi') . "/** The constants of the headers, by family. */\npublic final class Constants {\n    private Constants() {\n    }\n\n"
        . "    public static final String VERSION = \"$abi->{version}\";\n    public static final int SOVERSION = $abi->{soversion};\n";
    $made .= javadoc($_->{doc}, '    ') . "    public static final int " . $_->{name} =~ s/^COHORT_//r . " = $_->{value};\n" for @{$abi->{limits}};
    for my $family (@{$abi->{families}}) {
        my ($prefix) = map { /^(.*_)/ } $family->{values}[0]{name};
        for my $value (@{$family->{values}}) { $prefix =~ s/[^_]*_$// while index($value->{name}, $prefix) != 0 }
        my $name = camel_case($family->{name});
        $made .= "\n" . javadoc($family->{doc}, '    ') . "    public static final class $name {\n        private $name() {\n        }\n\n";
        $made .= javadoc($_->{doc}, '        ') . '        public static final int ' . substr($_->{name}, length $prefix) . " = $_->{value};\n"
            for @{$family->{values}};
        $made .= "    }\n";
    }
    return "$made}\n";
}

sub structs {
    my ($abi) = @_;
    my $made = '';
    for my $s (@{$abi->{structs}}) {
        my $fields = join ', ', map {"\"$_->{name}\""} @{$s->{fields}};
        $made .= "\n" . javadoc($s->{doc}, '    ') . "    \@Structure.FieldOrder({$fields})\n    public static class " . camel_case($s->{name}) . " extends Structure {\n";
        $made .= javadoc($_->{doc}, '        ') . '        public ' . inner_type($_) . " $_->{name};\n" for @{$s->{fields}};
        $made .= "    }\n";
    }
    return head('cohort.abi', 'com.sun.jna.Pointer', 'com.sun.jna.Structure')
        . "/** The structs of the headers; memory that a field points to must live as long as the struct is used. */\npublic final class Structs {\n    private Structs() {\n    }\n$made}\n";
}

sub callbacks {
    my ($abi) = @_;
    my $made = '';
    for my $c (@{$abi->{callbacks}}) {
        my $params = join ', ', map { inner_type($_) . " $_->{name}" } @{$c->{params}};
        $made .= "\n" . javadoc($c->{doc}, '    ') . '    public interface ' . camel_case($c->{name}) . " extends Callback {\n        $plain{$c->{returns}{kind}} invoke($params);\n    }\n";
    }
    return head('cohort.abi', 'com.sun.jna.Callback', 'com.sun.jna.Pointer')
        . "/** The callbacks of the headers; keep a reference to a callback as long as the library may call it. */\npublic final class Callbacks {\n    private Callbacks() {\n    }\n$made}\n";
}

# Tests for bindings/scala/src/test/java/cohort/abi: layout of structs, and bad input.
sub sweep {
    my ($abi) = @_;
    my $made = head('cohort.abi', 'com.sun.jna.Pointer', 'java.nio.Buffer') . "/** Each struct as C lays it out; each function with NULL, and with wrong handles. */\nfinal class Sweep {\n    private Sweep() {\n    }\n\n"
        . "    static void layout() {\n";
    for my $s (@{$abi->{structs}}) {
        my $name = camel_case($s->{name});
        $made .= "        Check.size(new Structs.$name(), $s->{bytes});\n";
        $made .= "        Check.offset(new Structs.$name(), \"$_->{name}\", $_->{offset});\n" for @{$s->{fields}};
    }
    $made .= "    }\n";
    my @refusing = grep { my $f = $_; $f->{returns}{kind} eq 'error' && grep({ ($_->{nullable} // '') eq 'no' } @{$f->{params}}) } @{$abi->{functions}};
    my @methods;
    for my $round (['nulls', \&null_value], ['strays', \&stray_value]) {
        my ($what, $value) = @$round;
        my @calls = map {
            my $f = $_;
            my @values = map { $value->($_) } @{$f->{params}};
            $what eq 'nulls' || grep({ $_->{kind} eq 'handle' && type_of($_) eq 'long' } @{$f->{params}})
                ? "        Check.refused(\"$f->{name}\", " . class_of($f->{header}) . ".$f->{name}(" . join(', ', @values) . "));\n" : ()
        } @refusing;
        $made .= "\n    static int $what() {\n" . join('', @calls) . '        return ' . scalar(@calls) . ";\n    }\n";
    }
    return "$made}\n";
}

sub null_value {
    my ($p) = @_;
    my $type = type_of($p);
    return $type eq 'int' || $type eq 'long' ? '0' : $type eq 'double' ? '0.0' : '(' . $type . ') null';
}

# A valid value, except for handles: an address that is not a handle.
sub stray_value {
    my ($p) = @_;
    my $type = type_of($p);
    return 'Check.stray()' if $p->{kind} eq 'handle' && $type eq 'long';
    return 'new long[]{Check.stray(), Check.stray()}' if $type eq 'long[]' && $p->{kind} eq 'handle' && $p->{direction} eq 'in';
    return "new $1" . '[64]' if $type =~ /^(\w+)\[\]$/;
    return '1' if $type eq 'int' || $type eq 'long' && $p->{kind} ne 'pointer';
    return '1.0' if $type eq 'double';
    return '"x"' if $type eq 'String';
    return null_value($p);
}

1;
