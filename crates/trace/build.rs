//! Compiles the journal's schema with protox, so that no protoc is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto/journal.proto");
    let schema = protox::compile(["proto/journal.proto"], ["proto"])?;
    prost_build::Config::new().btree_map(["."]).compile_fds(schema)?;
    Ok(())
}
