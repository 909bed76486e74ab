//! What people write in each language, and what nobody should.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

/// The sections of a text, as `level title: first line | last line`.
#[track_caller]
fn check(extension: &str, text: &str, expected: &[&str]) {
    let found = items(text, Language::of_extension(extension).unwrap()).unwrap();
    let shown: Vec<String> = found
        .iter()
        .map(|Item { level, title, span, .. }| {
            let lines: Vec<&str> = text[span.clone()].trim_end().lines().collect();
            format!("{level} {title}: {} | {}", lines[0].trim(), lines[lines.len() - 1].trim())
        })
        .collect();
    assert_eq!(shown, expected);
    assert!(found.iter().all(|item| item.span.start <= item.heading.start && item.heading.end <= item.span.end));
}

#[test]
fn rust_has_functions_types_traits_impls_and_modules() {
    let text = "//! Parsing.\nuse std::fmt;\n\n/// A parser.\n#[derive(Debug)]\npub struct Parser<'a> {\n    text: &'a str,\n    at: usize,\n}\n\n\
        impl<'a> Parser<'a> {\n    /// Parses.\n    #[must_use]\n    pub fn parse(&mut self) -> u8 {\n        self.at += 1;\n        self.at\n    }\n\n\
        \x20   fn at(&self) -> usize {\n        self.at\n    }\n}\n\n/**\n * Shown.\n */\nimpl fmt::Display for Parser<'_> {\n    \
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {\n        let text = self.text;\n        let at = self.at;\n        write!(f, \"{text}{at}\")\n    }\n}\n\n\
        pub(crate) mod inner {\n    // No doc, and none of the next one's.\n\n    pub fn last() {\n        one();\n        two();\n        three();\n    }\n}\n";
    check(
        "rs",
        text,
        &[
            "1 struct Parser: /// A parser. | }",
            "1 impl Parser<'a>: impl<'a> Parser<'a> { | }",
            "2 Parser::parse: /// Parses. | }",
            "1 impl fmt::Display for Parser<'_>: /** | }",
            "2 Parser::fmt: fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { | }",
            "1 mod inner: pub(crate) mod inner { | }",
            "2 fn last: pub fn last() { | }",
        ],
    );
}

#[test]
fn python_has_functions_with_their_decorators_and_classes() {
    let text = "\"\"\"Doc.\"\"\"\nimport os\n\n# Cached.\n@cache\ndef read(path,\n         mode):\n    return path\n\nclass Parser(Base):\n    \"\"\"A parser.\"\"\"\n\n    \
        @property\n    def at(self):\n        return self._at\n\n    async def parse(self):\n        \"\"\"Parses.\"\"\"\n        one()\n        two()\n        return 3\n\n    \
        class Error(Exception):\n        def said(self):\n            one()\n            two()\n            three()\n            return 4\n\nif True:\n    \
        def late():\n        one()\n        two()\n        three()\n        return 4\n";
    check(
        "py",
        text,
        &[
            "1 def read: # Cached. | return path",
            "1 class Parser: class Parser(Base): | return 4",
            "2 Parser.parse: async def parse(self): | return 3",
            "2 class Error: class Error(Exception): | return 4",
            "3 Error.said: def said(self): | return 4",
            "1 def late: def late(): | return 4",
        ],
    );
}

/// Functions and classes of both JavaScript and TypeScript.
const SCRIPT: &str = "/** Doc. */\nexport class A extends B {\n  handler = (e) => {\n    one();\n    two();\n    three();\n  };\n  constructor(a) {\n    super();\n    one();\n    two();\n  }\n}\n\n\
    export const foo = async (a) => {\n  one();\n  two();\n  three();\n};\nexport default function main() {\n  one();\n  two();\n  three();\n}\n\
    exports.bar = function () {\n  one();\n  two();\n  three();\n};\nmodule.exports = {\n  baz() {\n    one();\n    two();\n    three();\n  },\n  qux: function () {\n    one();\n    two();\n    three();\n  },\n};\n";

const OF_SCRIPT: [&str; 8] = [
    "1 class A: /** Doc. */ | }",
    "2 A.handler: handler = (e) => { | };",
    "2 A.constructor: constructor(a) { | }",
    "1 function foo: export const foo = async (a) => { | };",
    "1 function main: export default function main() { | }",
    "1 function exports.bar: exports.bar = function () { | };",
    "1 baz(): baz() { | },",
    "1 function qux: qux: function () { | };",
];

#[test]
fn javascript_and_typescript_have_functions_however_they_are_named() {
    check("js", SCRIPT, &OF_SCRIPT);
    check("tsx", SCRIPT, &OF_SCRIPT);
    let typed = format!(
        "{SCRIPT}interface I {{\n  a: string;\n  b: string;\n  c: number;\n}}\nnamespace N {{\n  export function inN() {{\n    one();\n    two();\n    three();\n  }}\n}}\n"
    );
    let of_types = [
        "1 interface I: interface I { | }",
        "1 namespace N: namespace N { | }",
        "2 function inN: export function inN() { | }",
    ];
    check("ts", &typed, &[&OF_SCRIPT[..], &of_types[..]].concat());
}

#[test]
fn go_and_java_have_types_and_their_methods() {
    check(
        "go",
        "package p\n\n// Parser parses.\ntype Parser struct {\n\ta int\n\tb int\n\tc int\n}\n\ntype (\n\t// A is.\n\tA struct {\n\t\ta int\n\t\tb int\n\t}\n\tB interface {\n\t\tF()\n\t\tG()\n\t\tH()\n\t}\n)\n\n// Parse does.\n\
         func (p *Parser[T]) Parse(a int) error {\n\tone()\n\ttwo()\n\treturn nil\n}\n\nfunc main() {\n\tone()\n\ttwo()\n\tthree()\n}\n",
        &[
            "1 type Parser: // Parser parses. | }",
            "1 type A: // A is. | }",
            "1 type B: B interface { | )",
            "1 func Parser.Parse: // Parse does. | }",
            "1 func main: func main() { | }",
        ],
    );
    check(
        "java",
        "package p;\n\n/** Doc. */\n@Service\npublic class A<T> extends B {\n    private int x;\n\n    /** C. */\n    public A(int x) {\n        this.x = x;\n        one();\n    }\n\n    @Override\n    \
         public <R> R parse(String s) throws X {\n        one();\n        return null;\n    }\n\n    enum E { A, B }\n\n    interface I {\n        void a();\n        void b();\n        void c();\n    }\n}\n",
        &[
            "1 class A: /** Doc. */ | }",
            "2 A.A: /** C. */ | }",
            "2 A.parse: @Override | }",
            "2 interface I: interface I { | }",
        ],
    );
}

#[test]
fn c_and_cpp_have_functions_types_and_namespaces() {
    check(
        "c",
        "#include <stdio.h>\n\n#ifdef X\n/* Doc */\nstatic int *parse(const char *s)\n{\n    one();\n    return 0;\n}\n#endif\n\ntypedef struct {\n    int a;\n    int b;\n    int c;\n} Thing;\n\n\
         struct plain {\n    int a;\n    int b;\n    int c;\n};\nstruct plain *made(void);\n",
        &[
            "1 parse(): /* Doc */ | }",
            "1 struct Thing: typedef struct { | } Thing;",
            "1 struct plain: struct plain { | };",
        ],
    );
    let cpp = "namespace a::b {\n\n/// Doc\ntemplate <typename T>\nclass Parser : public Base {\npublic:\n    Parser(int a) : a_(a) {\n        one();\n        two();\n        three();\n    }\n    \
         const std::string& name() const { return n_; }\n};\n\ntemplate <typename T>\nstd::string& Parser<T>::parse(int x) {\n    one();\n    return s;\n}\n\nbool operator==(const A& a, const A& b) {\n    one();\n    two();\n    return true;\n}\n}  // namespace a\n";
    let of_cpp = [
        "1 namespace a::b: namespace a::b { | }  // namespace a",
        "2 class Parser: /// Doc | };",
        "3 Parser::Parser: Parser(int a) : a_(a) { | }",
        "2 Parser<T>::parse(): template <typename T> | }",
        "2 operator==(): bool operator==(const A& a, const A& b) { | }",
    ];
    check("cpp", cpp, &of_cpp);
    check("h", cpp, &of_cpp);
}

#[test]
fn what_does_not_begin_its_line_or_is_short_stays_with_what_is_around_it() {
    check("js", &"function f(){\n\n\n\n\n}".replace('\n', " ").repeat(3), &[]);
    check("rs", "fn a() {\n    b()\n}\n", &[]);
    check("rs", "/// One.\n/// Two.\nfn a() {\n    b()\n}\n", &["1 fn a: /// One. | }"]);
    check("py", "", &[]);
}

#[test]
fn what_is_broken_is_passed_over() {
    check("rs", "fn a( {{{\n\n)\nfn b() {\n    one();\n    two();\n    three();\n}\n", &["1 fn b: fn b() { | }"]);
}

#[test]
fn too_many_items_or_levels_are_refused_by_name() {
    let refused = |extension: &str, text: &str| items(text, Language::of_extension(extension).unwrap()).unwrap_err();
    let one = "fn a() {\n\n\n\n}\n";
    assert_eq!(refused("rs", &one.repeat(300_000)).what, "classes and functions");
    let deep = (0..40).map(|n| format!("{}class A{n}:\n", " ".repeat(n))).collect::<String>();
    let deep = format!("{deep}{}pass\n", " ".repeat(40));
    assert_eq!(refused("py", &deep).what, "classes and functions inside each other");
    assert_eq!(refused("rs", &" ".repeat(CODE_BYTES_MAX as usize + 1)).what, "bytes of source code");
}

/// Far more than any of them takes on a busy machine, far less than one that takes its square.
const TIME_PER_BYTE: Duration = Duration::from_micros(50);

#[test]
fn what_is_no_code_costs_its_length() {
    let units = [
        "(",
        "{",
        "[",
        "<",
        ")",
        "\"",
        "'",
        "/*",
        "//",
        "#",
        "a",
        "a,",
        "a.",
        "a\n",
        "@",
        "=",
        "class a",
        "def a():\n",
        "mod a {",
        "{\n\n\n\n\n",
        "\\",
        "é",
        "🎉",
        "\r",
        "\0",
        "<a>",
        "`${",
        "template<",
    ];
    for extension in ["rs", "py", "js", "ts", "tsx", "go", "java", "c", "cpp"] {
        let language = Language::of_extension(extension).unwrap();
        for unit in units {
            let text = unit.repeat(64 * 1024 / unit.len());
            let start = Instant::now();
            let found = items(&text, language);
            let took = start.elapsed();
            assert!(took <= TIME_PER_BYTE * text.len() as u32, "{extension} {unit:?}: {took:?} {found:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Sections nest and follow each other, whatever the text.
    #[test]
    fn sections_of_any_text_nest(
        lines in prop::collection::vec(prop_oneof![
            "[ ]{0,8}(class|def|fn|impl|mod|struct|function|func|type|namespace|template <T>|interface|public void) ?[a-zé]{1,4}[(){}:;]{0,4}",
            "[ \t]{0,8}[{}]{1,3}[;,]?",
            "[ ]{0,8}(///|//|#|@|/\\*\\*|\\*/|#\\[) ?[a-z]{0,4}",
            "\\PC{0,20}",
            Just(String::new()),
        ], 0..60),
        extension in prop::sample::select(vec!["rs", "py", "js", "ts", "tsx", "go", "java", "c", "cpp"]),
    ) {
        let text = lines.join("\n");
        let Ok(found) = items(&text, Language::of_extension(extension).unwrap()) else { return Ok(()) };
        let mut open: Vec<&Item> = Vec::new();
        for item in &found {
            prop_assert!(text.get(item.span.clone()).is_some() && text.get(item.heading.clone()).is_some());
            prop_assert!(item.span.start <= item.heading.start && item.heading.end <= item.span.end, "{:?}", item);
            prop_assert!(item.span.start == 0 || text[..item.span.start].trim_end_matches([' ', '\t']).ends_with('\n'));
            while open.pop_if(|open| open.level >= item.level).is_some_and(|before| {
                assert!(before.span.end <= item.span.start, "{before:?} {item:?}");
                true
            }) {}
            prop_assert_eq!(open.len() + 1, usize::from(item.level));
            if let Some(around) = open.last() {
                prop_assert!(around.span.start < item.span.start && item.span.end <= around.span.end, "{:?} {:?}", around, item);
            }
            prop_assert!(item.opened.is_none_or(|at| item.span.start < at && at <= item.span.end));
            open.push(item);
        }
    }
}
