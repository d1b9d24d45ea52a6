//! `#[derive(State)]`: a state whose changes can be taken back, with no field forgotten.
//!
//! Every field of a struct or of an enum's variants must be a state itself. What never changes says so
//! with `#[state(fixed)]`; a field that is neither does not compile. A type that says `#[state(copied)]`
//! keeps no log and is copied whole before every event that may be taken back.
//!
//! This crate only writes code; what the trait means is told in `meikyo-undo`, which exports the macro.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Attribute, Data, DeriveInput, Error, Field, Fields, Ident, Type};

/// Derives `meikyo_undo::State`.
#[proc_macro_derive(State, attributes(state))]
pub fn derive_state(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    derived(input, &quote!(::meikyo_undo))
}

/// The same for crates that know `meikyo-undo` by way of `meikyo-sim` only: its prelude exports this
/// as `State`.
#[proc_macro_derive(ModelState, attributes(state))]
pub fn derive_model_state(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    derived(input, &quote!(::meikyo_sim::undo))
}

fn derived(input: proc_macro::TokenStream, undo: &TokenStream) -> proc_macro::TokenStream {
    let written = syn::parse(input).and_then(|input| expand(&input, undo));
    written.unwrap_or_else(Error::into_compile_error).into()
}

/// One way in which a state can look: its pattern, and the fields that may change.
struct Arm {
    pattern: TokenStream,
    fields: Vec<(Ident, Type)>,
}

fn expand(input: &DeriveInput, undo: &TokenStream) -> syn::Result<TokenStream> {
    let name = &input.ident;
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    let head =
        quote!(#[automatically_derived] impl #generics #undo::State for #name #arguments #bounds);
    if marked(&input.attrs, "copied")? {
        return Ok(quote! {
            #head {
                const COPIED: bool = true;
                fn revert(&mut self, _change: &mut #undo::Change<'_>) -> bool { false }
                #undo::bytes_of_copied!();
            }
        });
    }
    let arms = arms(input)?;
    let types = arms.iter().flat_map(|arm| arm.fields.iter().map(|(_, ty)| ty));
    let copied = types.map(|ty| quote_spanned!(ty.span() => || <#ty as #undo::State>::COPIED));
    let patterns = arms.iter().map(|arm| &arm.pattern);
    let reverts = arms.iter().map(|arm| {
        let fields = arm.fields.iter();
        let reverts = fields.map(|(field, ty)| {
            quote_spanned!(ty.span() => || <#ty as #undo::State>::revert(#field, change))
        });
        quote!(false #(#reverts)*)
    });
    let bytes = arms.iter().map(|Arm { pattern, fields }| {
        let fields = fields.iter().map(|(field, _)| field);
        quote!((#pattern) => [#(#fields)*])
    });
    Ok(quote! {
        #head {
            const COPIED: bool = false #(#copied)*;

            fn revert(&mut self, change: &mut #undo::Change<'_>) -> bool {
                let _ = &change;
                match self { #(#patterns => #reverts,)* }
            }

            #undo::bytes_of_arms!(#(#bytes),*);
        }
    })
}

fn arms(input: &DeriveInput) -> syn::Result<Vec<Arm>> {
    match &input.data {
        Data::Struct(data) => Ok(vec![arm(&quote!(Self), &data.fields)?]),
        Data::Enum(data) if data.variants.is_empty() => {
            Err(Error::new(Span::call_site(), "an enum without variants has no state"))
        }
        Data::Enum(data) => data
            .variants
            .iter()
            .map(|variant| {
                let name = &variant.ident;
                arm(&quote!(Self::#name), &variant.fields)
            })
            .collect(),
        Data::Union(_) => {
            Err(Error::new(Span::call_site(), "nobody knows which field of a union has changed"))
        }
    }
}

fn arm(path: &TokenStream, fields: &Fields) -> syn::Result<Arm> {
    let (mut kept, mut patterns) = (Vec::new(), Vec::new());
    for (at, field) in fields.iter().enumerate() {
        let index = syn::Index::from(at);
        let place = match &field.ident {
            Some(name) => quote!(#name),
            None => quote!(#index),
        };
        if is_fixed(field)? {
            continue;
        }
        let binding = format_ident!("field_{at}");
        patterns.push(quote!(#place: #binding));
        kept.push((binding, field.ty.clone()));
    }
    Ok(Arm { pattern: quote!(#path { #(#patterns,)* .. }), fields: kept })
}

fn is_fixed(field: &Field) -> syn::Result<bool> {
    marked(&field.attrs, "fixed")
}

/// Whether one of `attributes` is `#[state(word)]`; any other word is an error.
fn marked(attributes: &[Attribute], word: &str) -> syn::Result<bool> {
    let mut found = false;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("state")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident(word) {
                found = true;
                return Ok(());
            }
            Err(meta.error(format!("only `{word}` can stand here")))
        })?;
    }
    Ok(found)
}
