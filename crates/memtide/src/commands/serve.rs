//! `memtide serve`: the answers in a browser, and to programs.

mod announce;
mod source;
mod tools;

use serve::{AccessToken, HttpServer, ServeOptions};

use crate::cli::ServeArgs;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &ServeArgs, output: &Output) -> Result<Exit, CommandError> {
    let token = args.token_file.as_deref().map(AccessToken::read).transpose()?;
    let listen = args.addresses();
    let is_protected = token.is_some();
    let (source, about) = source::choose(args, output)?;
    let server = HttpServer::bind(ServeOptions {
        source,
        listen,
        token,
        allowed_hosts: args.allowed_hosts.clone(),
        units_max: args.units_max,
        screen: output.screen(),
        tools: tools::of(args)?,
    })?;
    announce::announce(&server.addresses(), &about, is_protected, output);
    server.run()?;
    Ok(Exit::Ok)
}
