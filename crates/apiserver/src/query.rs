//! The query of a request.

/// Names and values in their order, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

// === impl Query ===

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let pairs = query
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| {
                    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (percent_decode(name, true), percent_decode(value, true))
                })
                .collect(),
        )
    }

    /// The first value of that name, `None` where it is absent or empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.present(name).filter(|value| !value.is_empty())
    }

    /// The first value of that name.
    pub(crate) fn present(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Every value of that name.
    pub(crate) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// A switch: on unless it is absent, `false` or `0`.
    pub(crate) fn switch(&self, name: &str) -> bool {
        self.optional_switch(name).unwrap_or_default()
    }

    /// A switch that may be absent.
    pub(crate) fn optional_switch(&self, name: &str) -> Option<bool> {
        let value = self.present(name)?;
        Some(!value.eq_ignore_ascii_case("false") && value != "0")
    }

    /// A number; the error is Go's.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, String> {
        let Some(text) = self.present(name) else {
            return Ok(None);
        };
        let number = text
            .parse()
            .map_err(|_| format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))?;
        Ok(Some(number))
    }
}

/// The decoded text of a path or a form: `%2F` is a slash, in forms `+` is a blank.
pub(crate) fn percent_decode(text: &str, plus_is_blank: bool) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while let Some(byte) = bytes.get(index) {
        let escaped = bytes.get(index + 1..index + 3).filter(|_| *byte == b'%');
        let escaped = escaped.and_then(|digits| std::str::from_utf8(digits).ok());
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                index += 2;
            }
            None if *byte == b'+' && plus_is_blank => decoded.push(b' '),
            None => decoded.push(*byte),
        }
        index += 1;
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded() {
        let query = Query::parse(Some(
            "labelSelector=x+in+(1,2)&fieldSelector=a%3Db%21&dryRun=All&dryRun=%zz&limit=5&empty=",
        ));
        assert_eq!(query.text("labelSelector"), Some("x in (1,2)"));
        assert_eq!(query.text("fieldSelector"), Some("a=b!"));
        assert_eq!(query.all("dryRun").collect::<Vec<_>>(), ["All", "%zz"]);
        assert_eq!(query.number("limit"), Ok(Some(5)));
        let expected = (None, Some(""));
        assert_eq!((query.text("empty"), query.present("empty")), expected);
        let expected = Err("strconv.ParseInt: parsing \"x\": invalid syntax".to_owned());
        assert_eq!(Query::parse(Some("limit=x")).number("limit"), expected);
        assert!(query.number("empty").is_err());
        assert_eq!(percent_decode("a+b%2Fc", false), "a+b/c");
    }

    #[test]
    fn a_switch_is_on_unless_it_says_otherwise() {
        for (query, on) in [
            ("watch=1", true),
            ("watch=maybe", true),
            ("watch", true),
            ("watch=0", false),
            ("watch=False", false),
            ("", false),
        ] {
            assert_eq!(Query::parse(Some(query)).switch("watch"), on, "{query}");
        }
    }
}
