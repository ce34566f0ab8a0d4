// SPDX-License-Identifier: Apache-2.0
//! A parser for the JSON of the scenarios in tests/golden.
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Map(BTreeMap<String, Json>),
}

static NULL: Json = Json::Null;

impl Json {
    pub fn parse(text: &str) -> Json {
        let mut rest = text.as_bytes();
        let found = value(&mut rest);
        skip(&mut rest);
        assert!(rest.is_empty(), "there is more than JSON");
        found
    }

    /// A member of a map; null if there is none.
    pub fn get(&self, key: &str) -> &Json {
        match self {
            Json::Map(map) => map.get(key).unwrap_or(&NULL),
            _ => &NULL,
        }
    }

    pub fn is_null(&self) -> bool {
        *self == Json::Null
    }

    pub fn text(&self) -> &str {
        match self {
            Json::Text(text) => text,
            other => panic!("expected text, found {:?}", other),
        }
    }

    pub fn number(&self) -> f64 {
        match self {
            Json::Number(number) => *number,
            other => panic!("expected a number, found {:?}", other),
        }
    }

    pub fn truth(&self, default: bool) -> bool {
        match self {
            Json::Bool(value) => *value,
            Json::Number(value) => *value != 0.0,
            _ => default,
        }
    }

    /// The items of a list; none for null.
    pub fn items(&self) -> &[Json] {
        match self {
            Json::List(items) => items,
            Json::Null => &[],
            other => panic!("expected a list, found {:?}", other),
        }
    }

    /// The members of a map; none for null.
    pub fn members(&self) -> Vec<(&str, &Json)> {
        match self {
            Json::Map(map) => map.iter().map(|(key, value)| (key.as_str(), value)).collect(),
            Json::Null => Vec::new(),
            other => panic!("expected a map, found {:?}", other),
        }
    }

    pub fn texts(&self) -> Vec<&str> {
        self.items().iter().map(Json::text).collect()
    }
}

fn skip(rest: &mut &[u8]) {
    while let [b' ' | b'\n' | b'\t' | b'\r', tail @ ..] = rest {
        *rest = tail;
    }
}

fn take(rest: &mut &[u8], word: &str) {
    *rest = rest.strip_prefix(word.as_bytes()).unwrap_or_else(|| panic!("expected {}", word));
}

fn value(rest: &mut &[u8]) -> Json {
    skip(rest);
    match rest[0] {
        b'{' => {
            take(rest, "{");
            let mut map = BTreeMap::new();
            skip(rest);
            while rest[0] != b'}' {
                skip(rest);
                let key = string(rest);
                skip(rest);
                take(rest, ":");
                map.insert(key, value(rest));
                comma(rest);
            }
            take(rest, "}");
            Json::Map(map)
        }
        b'[' => {
            take(rest, "[");
            let mut list = Vec::new();
            skip(rest);
            while rest[0] != b']' {
                list.push(value(rest));
                comma(rest);
            }
            take(rest, "]");
            Json::List(list)
        }
        b'"' => Json::Text(string(rest)),
        b't' => {
            take(rest, "true");
            Json::Bool(true)
        }
        b'f' => {
            take(rest, "false");
            Json::Bool(false)
        }
        b'n' => {
            take(rest, "null");
            Json::Null
        }
        _ => {
            let end = rest.iter().position(|c| !b"+-.0123456789eE".contains(c)).unwrap_or(rest.len());
            let (number, tail) = rest.split_at(end);
            *rest = tail;
            Json::Number(std::str::from_utf8(number).unwrap().parse().unwrap())
        }
    }
}

fn comma(rest: &mut &[u8]) {
    skip(rest);
    if rest[0] == b',' {
        take(rest, ",");
        skip(rest);
    }
}

fn string(rest: &mut &[u8]) -> String {
    take(rest, "\"");
    let mut bytes = Vec::new();
    while rest[0] != b'"' {
        if rest[0] == b'\\' {
            take(rest, "\\");
            assert!(b"\"\\/".contains(&rest[0]), "an escape that no scenario has");
        }
        bytes.push(rest[0]);
        *rest = &rest[1..];
    }
    take(rest, "\"");
    String::from_utf8(bytes).unwrap()
}
