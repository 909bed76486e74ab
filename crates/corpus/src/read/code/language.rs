//! The languages whose files are read by syntax: their grammars, and which nodes of a syntax tree are items.
//!
//! A new language is a variant of [`Language`], its extensions, its grammar, and the roles of its nodes.

/// A language with a grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Rust,
    Python,
    JavaScript,
    TypeScript,
    Tsx,
    Go,
    Java,
    C,
    Cpp,
}

/// The part that a node plays among the items of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A function behind its keyword; nothing inside it is an item.
    Function(&'static str),
    /// A type without items in it.
    Type(&'static str),
    /// A class, or what else has methods.
    Class(&'static str),
    /// A module or namespace.
    Module(&'static str),
    /// A name that is given a value: an item if that is a function or a class.
    Value,
    /// The same, in the fields named: the name and its value.
    Assigned(&'static str, &'static str),
    /// Something around an item, which begins with it: decorators, `export`, `template <…>`.
    Wrapper,
    /// The same, unless several items stand in it.
    WrapperOfOne,
    /// A name for a type in C, which may have no other, or is around it.
    Typedef,
    /// A comment or attribute, which belongs to the item below it.
    Lead,
}

impl Language {
    /// The language of an extension in lower case; C may turn out to be C++ by its text ([`Language::of_header`]).
    pub(crate) fn of_extension(extension: &str) -> Option<Self> {
        Some(match extension {
            "rs" => Self::Rust,
            "py" | "pyi" => Self::Python,
            "js" | "mjs" | "cjs" | "jsx" => Self::JavaScript,
            "ts" => Self::TypeScript,
            "tsx" => Self::Tsx,
            "go" => Self::Go,
            "java" => Self::Java,
            "c" | "h" => Self::C,
            "cc" | "cpp" | "cxx" | "hpp" | "hh" => Self::Cpp,
            _ => return None,
        })
    }

    /// C++ for a header in whose text a line begins as C++ alone does.
    pub(super) fn of_header(text: &str) -> Self {
        let is_cpp = |line: &str| {
            let line = line.trim_start();
            ["class ", "namespace ", "template <", "template<", "public:", "private:"]
                .iter()
                .any(|x| line.starts_with(x))
        };
        if text.lines().any(is_cpp) { Self::Cpp } else { Self::C }
    }

    /// Its grammar.
    pub(super) fn grammar(self) -> tree_sitter::Language {
        match self {
            Self::Rust => tree_sitter_rust::LANGUAGE,
            Self::Python => tree_sitter_python::LANGUAGE,
            Self::JavaScript => tree_sitter_javascript::LANGUAGE,
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX,
            Self::Go => tree_sitter_go::LANGUAGE,
            Self::Java => tree_sitter_java::LANGUAGE,
            Self::C => tree_sitter_c::LANGUAGE,
            Self::Cpp => tree_sitter_cpp::LANGUAGE,
        }
        .into()
    }

    /// Between a class and its method, in a name.
    pub(super) fn separator(self) -> &'static str {
        match self {
            Self::Rust | Self::Cpp => "::",
            Self::Python | Self::JavaScript | Self::TypeScript | Self::Tsx | Self::Go | Self::Java | Self::C => ".",
        }
    }

    /// The roles of its nodes, by their number in the grammar.
    pub(super) fn roles(self, grammar: &tree_sitter::Language) -> Vec<Option<Role>> {
        let kinds = u16::try_from(grammar.node_kind_count()).unwrap_or(u16::MAX);
        let named = |id: &u16| grammar.node_kind_is_named(*id);
        let kind = |id: u16| grammar.node_kind_for_id(id).and_then(|kind| self.role(kind));
        (0..kinds).map(|id| Some(id).filter(named).and_then(kind)).collect()
    }

    /// The role of a kind of node.
    fn role(self, kind: &str) -> Option<Role> {
        if kind.ends_with("comment") {
            return Some(Role::Lead);
        }
        match self {
            Self::Rust => rust(kind),
            Self::Python => python(kind),
            Self::JavaScript => javascript(kind),
            Self::TypeScript | Self::Tsx => typescript(kind).or_else(|| javascript(kind)),
            Self::Go => go(kind),
            Self::Java => java(kind),
            Self::C => c(kind),
            Self::Cpp => cpp(kind).or_else(|| c(kind)),
        }
    }
}

fn rust(kind: &str) -> Option<Role> {
    Some(match kind {
        "function_item" | "function_signature_item" => Role::Function("fn"),
        "macro_definition" => Role::Function("macro_rules!"),
        "struct_item" => Role::Type("struct"),
        "enum_item" => Role::Type("enum"),
        "union_item" => Role::Type("union"),
        "trait_item" => Role::Class("trait"),
        "impl_item" => Role::Class("impl"),
        "mod_item" => Role::Module("mod"),
        "attribute_item" => Role::Lead,
        _ => return None,
    })
}

fn python(kind: &str) -> Option<Role> {
    Some(match kind {
        "function_definition" => Role::Function("def"),
        "class_definition" => Role::Class("class"),
        "decorated_definition" => Role::Wrapper,
        _ => return None,
    })
}

fn javascript(kind: &str) -> Option<Role> {
    Some(match kind {
        "function_declaration" | "generator_function_declaration" => Role::Function("function"),
        "method_definition" => Role::Function(""),
        "class_declaration" => Role::Class("class"),
        "variable_declarator" => Role::Value,
        "field_definition" => Role::Assigned("property", "value"),
        "pair" => Role::Assigned("key", "value"),
        "assignment_expression" => Role::Assigned("left", "right"),
        "export_statement" | "lexical_declaration" | "variable_declaration" | "expression_statement" => Role::Wrapper,
        _ => return None,
    })
}

fn typescript(kind: &str) -> Option<Role> {
    Some(match kind {
        "function_signature" => Role::Function("function"),
        "abstract_class_declaration" => Role::Class("class"),
        "interface_declaration" => Role::Type("interface"),
        "enum_declaration" => Role::Type("enum"),
        "internal_module" | "module" => Role::Module("namespace"),
        "public_field_definition" => Role::Value,
        "ambient_declaration" => Role::Wrapper,
        _ => return None,
    })
}

fn go(kind: &str) -> Option<Role> {
    Some(match kind {
        "function_declaration" | "method_declaration" => Role::Function("func"),
        "type_spec" => Role::Type("type"),
        "type_declaration" => Role::WrapperOfOne,
        _ => return None,
    })
}

fn java(kind: &str) -> Option<Role> {
    Some(match kind {
        "method_declaration" | "constructor_declaration" | "compact_constructor_declaration" => Role::Function(""),
        "class_declaration" => Role::Class("class"),
        "interface_declaration" => Role::Class("interface"),
        "enum_declaration" => Role::Class("enum"),
        "record_declaration" => Role::Class("record"),
        "annotation_type_declaration" => Role::Class("@interface"),
        _ => return None,
    })
}

fn c(kind: &str) -> Option<Role> {
    Some(match kind {
        "function_definition" => Role::Function(""),
        "struct_specifier" => Role::Type("struct"),
        "union_specifier" => Role::Type("union"),
        "enum_specifier" => Role::Type("enum"),
        "type_definition" => Role::Typedef,
        _ => return None,
    })
}

fn cpp(kind: &str) -> Option<Role> {
    Some(match kind {
        "class_specifier" => Role::Class("class"),
        "struct_specifier" => Role::Class("struct"),
        "namespace_definition" => Role::Module("namespace"),
        "template_declaration" => Role::Wrapper,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::is_source_code;

    const ALL: [(Language, &str); 9] = [
        (Language::Rust, "rs"),
        (Language::Python, "py"),
        (Language::JavaScript, "js"),
        (Language::TypeScript, "ts"),
        (Language::Tsx, "tsx"),
        (Language::Go, "go"),
        (Language::Java, "java"),
        (Language::C, "c"),
        (Language::Cpp, "cpp"),
    ];

    #[test]
    fn every_role_is_of_a_node_that_its_grammar_has() {
        for (language, extension) in ALL {
            assert_eq!(Language::of_extension(extension), Some(language));
            assert!(is_source_code(extension));
            let grammar = language.grammar();
            let roles = language.roles(&grammar);
            let has = |wanted: fn(&Role) -> bool| roles.iter().flatten().any(wanted);
            assert!(has(|role| matches!(role, Role::Function(_))), "{language:?}");
            assert!(has(|role| matches!(role, Role::Type(_) | Role::Class(_))), "{language:?}");
            assert!(has(|role| matches!(role, Role::Lead)), "{language:?}");
        }
    }
}
