//! Generates the Rust messages and stubs of the etcd API: `windlass-etcd-messages PROTOCOL_FILE OUTPUT_FOLDER`.
//!
//! The protocol file is parsed by protox, so that no `protoc` has to be on the machine.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [file, folder] = arguments.as_slice() else {
        return Err("expected two arguments: the protocol file and the folder for the generated file".into());
    };
    let file = Path::new(file);
    let files = protox::compile([file], [file.parent().unwrap_or(file)])?;
    tonic_prost_build::configure()
        .build_client(true)
        .build_server(true)
        .out_dir(folder)
        .compile_fds(files)?;
    Ok(())
}
