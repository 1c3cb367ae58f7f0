//! Requests for objects, by verb.

use std::sync::Arc;

use http::{Method, StatusCode};
use serde_json::json;

use crate::body;
use crate::call::Call;
use crate::definition::{DEFINITIONS, KindDefinition};
use crate::failure::Failure;
use crate::kind::Kind;
use crate::options::{DeleteOptions, ListOptions, WriteOptions};
use crate::patch;
use crate::path::ResourcePath;
use crate::read;
use crate::remove::Removed;
use crate::render::ObjectRenderer;
use crate::reply::{self, HttpReply, ReplyForm, Warnings};
use crate::selector::Selector;
use crate::server::ServerParts;
use crate::store::{ObjectFields, StoreKey};
use crate::stream::WatchStream;
use crate::write::{Transaction, Update, WrittenObject};

// === impl ServerParts ===

impl ServerParts {
    /// Serves a request for one object or a collection.
    pub(crate) async fn serve_resource(
        self: &Arc<Self>,
        target: &ResourcePath,
        call: &Call,
    ) -> Result<HttpReply, Failure> {
        let namespace = target.namespace.as_deref();
        let whole = !target.kind.namespaced || namespace.is_some();
        let place = namespace.unwrap_or_default();
        match (&call.method, target.name.as_deref()) {
            (&Method::POST, _) if target.status => {
                Err(Failure::not_supported(target.kind, "create"))
            }
            (&Method::DELETE, _) if target.status => {
                Err(Failure::not_supported(target.kind, "delete"))
            }
            (&Method::GET, name) if target.watch || name.is_none() => {
                self.list_or_watch(target, call).await
            }
            (&Method::GET, Some(name)) => self.get(target, place, name, call).await,
            (&Method::POST, name @ None) | (&Method::PUT, name @ Some(_)) if whole => {
                self.put(target, place, name, call)
            }
            (&Method::PATCH, Some(name)) if whole => self.patch(target, place, name, call),
            (&Method::DELETE, Some(name)) if whole => self.delete(target, place, name, call),
            (&Method::DELETE, None) if whole && target.kind.namespaced => {
                self.delete_collection(target, call).await
            }
            _ => Err(Failure::method_not_allowed()),
        }
    }

    async fn get(
        &self,
        target: &ResourcePath,
        namespace: &str,
        name: &str,
        call: &Call,
    ) -> Result<HttpReply, Failure> {
        let view = self.view(target, call)?;
        let key = StoreKey::new(namespace, name);
        let version = call.query.text("resourceVersion");
        let cache = call.link.now().cache;
        let object = read::get(&self.store, target.kind, &key, version, cache).await?;
        Ok(reply::json(StatusCode::OK, &view.object(object.fields())))
    }

    async fn list_or_watch(
        self: &Arc<Self>,
        target: &ResourcePath,
        call: &Call,
    ) -> Result<HttpReply, Failure> {
        let form = ReplyForm::wanted(&call.headers, true)?;
        let namespace = target.namespace.as_deref();
        let mut options =
            ListOptions::read(&call.query, target.kind, target.watch, self.config.sharding)?;
        if let Some(name) = &target.name {
            options.selector.fields = options.selector.fields.and("metadata.name", name);
        }
        let view = ObjectRenderer::new(target.kind, form, &call.query, &self.config.clock)?;
        if options.watch {
            let body = WatchStream::begin(self, view, namespace, &options, call.link.clone())?;
            return Ok(reply::stream(body));
        }
        let cache = call.link.now().cache;
        let page = read::list(&self.store, target.kind, namespace, &options, cache).await?;
        let items = page.objects.iter().map(|object| object.fields());
        let mut meta = page.meta();
        if let Some(selector) = options
            .selector
            .shards
            .reported()
            .filter(|_| view.tells_shards())
        {
            meta["shardInfo"] = json!({"selector": selector});
        }
        Ok(reply::json(StatusCode::OK, &view.list(meta, items)))
    }

    /// Creates an object, or replaces the one of this name.
    fn put(
        &self,
        target: &ResourcePath,
        namespace: &str,
        name: Option<&str>,
        call: &Call,
    ) -> Result<HttpReply, Failure> {
        let view = self.view(target, call)?;
        let kind_of_options = name.map_or("CreateOptions", |_| "UpdateOptions");
        let options = WriteOptions::read(&call.query, kind_of_options)?;
        let mut warnings = Warnings::default();
        let new = body::object(
            target.kind,
            &call.headers,
            &call.body,
            options.validation,
            &mut warnings,
        )?;
        let written = self.transaction(target, options.dry_run, |transaction| match name {
            None => transaction.create(namespace, new),
            Some(name) => transaction.update(namespace, name, new, Update::Put),
        })?;
        self.follow_definitions_of(target);
        Ok(written_reply(&view, &written, &warnings))
    }

    fn patch(
        &self,
        target: &ResourcePath,
        namespace: &str,
        name: &str,
        call: &Call,
    ) -> Result<HttpReply, Failure> {
        let patch = patch::Patch::of(target.kind, &call.headers, &call.body)?;
        let view = self.view(target, call)?;
        let (options, how) = if patch.is_apply() {
            (WriteOptions::of_apply(&call.query)?, Update::Apply)
        } else {
            let options = WriteOptions::read(&call.query, "PatchOptions")?;
            (options, Update::Patch)
        };
        let mut warnings = Warnings::default();
        let written = self.transaction(target, options.dry_run, |transaction| {
            let object = transaction.current(&transaction.key(namespace, name));
            let fields = match &object {
                Some(object) => object.fields(),
                None if how == Update::Apply && !target.status => &ObjectFields::new(),
                None => return Err(Failure::not_found(target.kind, name)),
            };
            let new = patch.apply(target.kind, fields, options.validation, &mut warnings)?;
            transaction.update(namespace, name, new, how)
        })?;
        self.follow_definitions_of(target);
        Ok(written_reply(&view, &written, &warnings))
    }

    fn delete(
        &self,
        target: &ResourcePath,
        namespace: &str,
        name: &str,
        call: &Call,
    ) -> Result<HttpReply, Failure> {
        let view = self.view(target, call)?;
        let options = DeleteOptions::read(&call.query, &call.headers, &call.body)?;
        let removed = self.transaction(target, options.dry_run, |transaction| {
            transaction.delete(namespace, name, &options)
        })?;
        self.follow_definitions_of(target);
        Ok(match removed {
            Removed::Gone(status) => reply::json(StatusCode::OK, &status),
            Removed::Waiting(fields) => reply::json(StatusCode::OK, &view.object(&fields)),
        })
    }

    async fn delete_collection(
        &self,
        target: &ResourcePath,
        call: &Call,
    ) -> Result<HttpReply, Failure> {
        let view = self.view(target, call)?;
        let delete = DeleteOptions::read(&call.query, &call.headers, &call.body)?;
        let options = ListOptions::read(&call.query, target.kind, false, self.config.sharding)?;
        let namespace = target.namespace.as_deref();
        let page = read::list(&self.store, target.kind, namespace, &options, None).await?;
        let selector: &Selector = &options.selector;
        let removed = self.transaction(target, delete.dry_run, |transaction| {
            transaction.delete_all(namespace, selector)
        });
        self.follow_definitions_of(target);
        Ok(reply::json(
            StatusCode::OK,
            &view.list(page.meta(), &removed),
        ))
    }

    fn view(&self, target: &ResourcePath, call: &Call) -> Result<ObjectRenderer, Failure> {
        let form = ReplyForm::wanted(&call.headers, false)?;
        ObjectRenderer::new(target.kind, form, &call.query, &self.config.clock)
    }

    /// Runs one transaction of a write.
    fn transaction<T>(
        &self,
        target: &ResourcePath,
        dry_run: bool,
        run: impl FnOnce(&mut Transaction<'_>) -> T,
    ) -> T {
        self.store.with(|state| {
            let kind = target.kind;
            let config = &self.config;
            run(&mut Transaction {
                state,
                config,
                kind,
                status: target.status,
                dry_run,
            })
        })
    }

    /// Serves what the CustomResourceDefinitions define, where the target is one.
    fn follow_definitions_of(&self, target: &ResourcePath) {
        if target.kind.bucket == DEFINITIONS {
            self.follow_definitions();
        }
    }

    /// Serves what the CustomResourceDefinitions define. Objects go with their definition.
    pub(crate) fn follow_definitions(&self) {
        let before = self.served.kinds();
        let definitions = self.store.with(|state| {
            let objects = state.table(DEFINITIONS).objects(None);
            let kinds = objects.flat_map(|object| KindDefinition::of_object(object.fields()));
            kinds.collect::<Vec<_>>()
        });
        self.served.define(definitions.into_iter());
        let served = self.served.kinds();
        let is_served = |kind: &&&Kind| served.iter().any(|one| one.bucket == kind.bucket);
        let gone = before.iter().filter(|kind| kind.custom && !is_served(kind));
        for kind in gone.filter(|kind| kind.schema.open) {
            self.store.with(|state| state.clear(kind.bucket));
        }
        if before.len() != served.len() {
            self.faults.wake();
        }
    }
}

fn written_reply(view: &ObjectRenderer, written: &WrittenObject, warnings: &Warnings) -> HttpReply {
    let mut reply = reply::json(written.code, &view.object(&written.fields));
    warnings.put_on(&mut reply);
    reply
}
