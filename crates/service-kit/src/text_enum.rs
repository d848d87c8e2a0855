//! Enums that are words on the wire and in the database.

/// An enum stored as TEXT with the words of the wire, on both databases.
#[macro_export]
macro_rules! text_enum {
    ($(#[$doc:meta])* pub enum $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, diesel::expression::AsExpression,
            diesel::deserialize::FromSqlRow,
        )]
        #[diesel(sql_type = diesel::sql_types::Text)]
        pub enum $name { $($(#[$vdoc])* $variant,)+ }

        impl $name {
            /// The word on the wire and in the database.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;
            fn from_str(word: &str) -> Result<Self, String> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(format!("must be one of {}", [$($word),+].join(", "))),
                }
            }
        }

        impl<B: diesel::backend::Backend> diesel::deserialize::FromSql<diesel::sql_types::Text, B> for $name
        where
            String: diesel::deserialize::FromSql<diesel::sql_types::Text, B>,
        {
            fn from_sql(value: B::RawValue<'_>) -> diesel::deserialize::Result<Self> {
                Ok(String::from_sql(value)?.parse()?)
            }
        }

        impl<B: diesel::backend::Backend> diesel::serialize::ToSql<diesel::sql_types::Text, B> for $name
        where
            str: diesel::serialize::ToSql<diesel::sql_types::Text, B>,
        {
            fn to_sql<'b>(&'b self, out: &mut diesel::serialize::Output<'b, '_, B>) -> diesel::serialize::Result {
                <str as diesel::serialize::ToSql<diesel::sql_types::Text, B>>::to_sql(self.word(), out)
            }
        }

        impl deserr::Deserr<common::problem::Violations> for $name {
            fn deserialize_from_value<V: deserr::IntoValue>(
                value: deserr::Value<V>,
                at: deserr::ValuePointerRef<'_>,
            ) -> Result<Self, common::problem::Violations> {
                common::input::parse_text(value, at, common::problem::Rule::NotAllowed)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .enum_values(Some([$($word),+]))
                    .into()
            }
        }

        impl utoipa::ToSchema for $name {}
    };
}
