//! Bodies in protocol buffers, which client-go prefers to send. Answers are JSON, which it takes as well.

use jiff::Timestamp;

use crate::gotime::TimeLayout;
use crate::json::Node;
use crate::schema::{Struct, Type};

/// Why a body cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnreadableProtobuf;

/// The media type.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// The first bytes of every body.
const MAGIC: &[u8] = b"k8s\0";

/// A value on the wire.
enum Wire<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// Of a fixed size; nothing here has such.
    Fixed,
}

/// The rest of a message.
struct ProtobufReader<'a>(&'a [u8]);

/// Reads an object in its envelope: kind and version, then the fields by the schema.
pub(crate) fn object(schema: &Struct, body: &[u8]) -> Result<Node, UnreadableProtobuf> {
    let mut envelope = ProtobufReader(body.strip_prefix(MAGIC).ok_or(UnreadableProtobuf)?);
    let (mut kind, mut raw): (&[u8], &[u8]) = (&[], &[]);
    while let Some((tag, value)) = envelope.next()? {
        match (tag, value) {
            (1, Wire::Bytes(bytes)) => kind = bytes,
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let mut fields = Vec::new();
    let mut kind = ProtobufReader(kind);
    while let Some((tag, value)) = kind.next()? {
        let name = if tag == 1 { "apiVersion" } else { "kind" };
        if let Wire::Bytes(bytes) = value {
            fields.push((name.to_owned(), text(bytes)?));
        }
    }
    message(schema, raw, &mut fields)?;
    Ok(Node::Map(fields))
}

/// Reads the fields of a message. What the schema does not have is passed over.
fn message(
    schema: &Struct,
    bytes: &[u8],
    fields: &mut Vec<(String, Node)>,
) -> Result<(), UnreadableProtobuf> {
    let mut reader = ProtobufReader(bytes);
    while let Some((tag, wire)) = reader.next()? {
        let Some(field) = schema
            .fields
            .iter()
            .find(|field| field.tag == tag && tag != 0)
        else {
            continue;
        };
        let earlier = fields.iter().position(|(name, _)| name == field.name);
        let node = match (field.kind, wire) {
            (Type::Text | Type::OptionalText, Wire::Bytes(bytes)) => text(bytes)?,
            (
                Type::Int32 | Type::Int64 | Type::OptionalInt32 | Type::OptionalInt64,
                Wire::Varint(number),
            ) => Node::Number(number.cast_signed().into()),
            (Type::Bool, Wire::Varint(number)) => Node::Bool(number != 0),
            (Type::Time(layout), Wire::Bytes(bytes)) => time(bytes, layout)?,
            (Type::Struct(inner), Wire::Bytes(bytes)) => nested(inner, bytes)?,
            (Type::Texts, Wire::Bytes(bytes)) => {
                let entry = entry(bytes)?;
                let mut entries = match earlier.map(|index| fields.remove(index).1) {
                    Some(Node::Map(entries)) => entries,
                    _ => Vec::new(),
                };
                entries.push(entry);
                fields.push((field.name.to_owned(), Node::Map(entries)));
                continue;
            }
            (Type::TextList | Type::Structs(..), Wire::Bytes(bytes)) => {
                let item = match field.kind {
                    Type::Structs(inner, _) => nested(inner, bytes)?,
                    _ => text(bytes)?,
                };
                let mut items = match earlier.map(|index| fields.remove(index).1) {
                    Some(Node::List(items)) => items,
                    _ => Vec::new(),
                };
                items.push(item);
                fields.push((field.name.to_owned(), Node::List(items)));
                continue;
            }
            (Type::Dropped | Type::Any, _) => continue,
            _ => return Err(UnreadableProtobuf),
        };
        // The last of several counts.
        fields.retain(|(name, _)| name != field.name);
        fields.push((field.name.to_owned(), node));
    }
    Ok(())
}

fn nested(schema: &Struct, bytes: &[u8]) -> Result<Node, UnreadableProtobuf> {
    let mut fields = Vec::new();
    message(schema, bytes, &mut fields)?;
    Ok(Node::Map(fields))
}

/// Key and value of a map.
fn entry(bytes: &[u8]) -> Result<(String, Node), UnreadableProtobuf> {
    let (mut key, mut value) = (String::new(), String::new());
    let mut reader = ProtobufReader(bytes);
    while let Some((tag, wire)) = reader.next()? {
        let Wire::Bytes(bytes) = wire else {
            return Err(UnreadableProtobuf);
        };
        let text = std::str::from_utf8(bytes)
            .map_err(|_| UnreadableProtobuf)?
            .to_owned();
        match tag {
            1 => key = text,
            _ => value = text,
        }
    }
    Ok((key, Node::Text(value)))
}

/// Seconds and nanoseconds since 1970; both zero is no time.
fn time(bytes: &[u8], layout: TimeLayout) -> Result<Node, UnreadableProtobuf> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = ProtobufReader(bytes);
    while let Some((tag, wire)) = reader.next()? {
        match (tag, wire) {
            (1, Wire::Varint(number)) => seconds = number.cast_signed(),
            (2, Wire::Varint(number)) => nanos = number.cast_signed(),
            _ => {}
        }
    }
    if (seconds, nanos) == (0, 0) {
        return Ok(Node::Null);
    }
    let nanos = i32::try_from(nanos).map_err(|_| UnreadableProtobuf)?;
    let time = Timestamp::new(seconds, nanos).map_err(|_| UnreadableProtobuf)?;
    let format = match layout {
        TimeLayout::Micro => "%Y-%m-%dT%H:%M:%S.%6fZ",
        TimeLayout::Seconds => "%Y-%m-%dT%H:%M:%SZ",
    };
    Ok(Node::Text(time.strftime(format).to_string()))
}

fn text(bytes: &[u8]) -> Result<Node, UnreadableProtobuf> {
    let text = std::str::from_utf8(bytes).map_err(|_| UnreadableProtobuf)?;
    Ok(Node::Text(text.to_owned()))
}

// === impl ProtobufReader ===

impl<'a> ProtobufReader<'a> {
    /// The next field: its number and its value.
    fn next(&mut self) -> Result<Option<(u32, Wire<'a>)>, UnreadableProtobuf> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let tag = u32::try_from(key >> 3).map_err(|_| UnreadableProtobuf)?;
        let value = match key & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => self.take(8).map(|_| Wire::Fixed)?,
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| UnreadableProtobuf)?;
                Wire::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Wire::Fixed)?,
            _ => return Err(UnreadableProtobuf),
        };
        Ok(Some((tag, value)))
    }

    fn varint(&mut self) -> Result<u64, UnreadableProtobuf> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = *self.take(1)? else {
                return Err(UnreadableProtobuf);
            };
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(UnreadableProtobuf)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], UnreadableProtobuf> {
        let (head, tail) = self.0.split_at_checked(length).ok_or(UnreadableProtobuf)?;
        self.0 = tail;
        Ok(head)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fields::LEASE;

    /// A field that holds bytes.
    fn bytes(tag: u8, value: &[u8]) -> Vec<u8> {
        let mut field = vec![tag << 3 | 2, u8::try_from(value.len()).unwrap()];
        field.extend_from_slice(value);
        field
    }

    fn lease() -> Vec<u8> {
        let label = |key: &str| bytes(11, &[bytes(1, key.as_bytes()), bytes(2, b"v")].concat());
        let metadata = [
            bytes(1, b"a"),
            label("x"),
            label("y"),
            bytes(14, b"f/g"),
            bytes(14, b"h/i"),
            // Number 17 takes two bytes.
            vec![0x8a, 0x01, 1, 0],
            vec![7 << 3, 0],
            bytes(8, b""),
        ];
        // 1 s and 5 000 ns; a duration of 15; an unknown number of another size.
        let time = [vec![8, 1], vec![16, 0x88, 0x27]].concat();
        let unknown = vec![0xf5, 0x01, 0, 0, 0, 0];
        let spec = [bytes(1, b""), vec![2 << 3, 15], bytes(4, &time), unknown].concat();
        let raw = [bytes(1, &metadata.concat()), bytes(2, &spec)].concat();
        let kind = [bytes(1, b"coordination.k8s.io/v1"), bytes(2, b"Lease")].concat();
        [MAGIC.to_vec(), bytes(1, &kind), bytes(2, &raw)].concat()
    }

    #[test]
    fn an_object_is_read() {
        let node = object(&LEASE, &lease()).unwrap();
        let decoded = LEASE.decode(&node).unwrap();
        assert_eq!(decoded.objections, Vec::<String>::new());
        assert_eq!(
            serde_json::Value::Object(decoded.fields),
            json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": "a", "labels": {"x": "v", "y": "v"}, "finalizers": ["f/g", "h/i"]},
                "spec": {
                    "holderIdentity": "", "leaseDurationSeconds": 15, "renewTime": "1970-01-01T00:00:01.000005Z",
                },
            })
        );
    }

    #[test]
    fn nonsense_is_refused_and_never_panics() {
        let whole = lease();
        assert_eq!(object(&LEASE, b"{}"), Err(UnreadableProtobuf));
        for end in 0..whole.len() {
            // Cut anywhere it is either read or refused.
            let _ = object(&LEASE, &whole[..end]);
        }
        let expected = Err(UnreadableProtobuf);
        assert_eq!(object(&LEASE, &[MAGIC, &[0x0a, 0xff]].concat()), expected);
    }
}
