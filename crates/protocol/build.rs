//! Compiles the wire's schema with protox, so that no protoc is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto/wire.proto");
    let schema = protox::compile(["proto/wire.proto"], ["proto"])?;
    prost_build::Config::new().btree_map(["."]).compile_fds(schema)?;
    Ok(())
}
