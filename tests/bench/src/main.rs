//! The same load on the embedded API server and on kube-apiserver with etcd, one after the other in one run. Both are separate
//! programs that sync every write to a disk; this program is the client of both. Figures are medians; nothing is asserted.

mod client;
mod item;
mod load;
mod rows;
mod subject;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::rows::{Row, Scale, measure};
use crate::subject::{Kind, Subject};
use crate::table::{Table, side_by_side};

#[derive(Debug, Parser)]
#[command(about = "The same load on the embedded API server and on kube-apiserver with etcd")]
struct Args {
    /// The program windlass, in a release build
    #[arg(long, value_name = "FILE")]
    windlass: PathBuf,
    /// A folder on a disk, for data
    #[arg(long, value_name = "DIR")]
    disk: PathBuf,
    /// Only these rows
    #[arg(long, value_enum, value_delimiter = ',')]
    rows: Vec<Row>,
    /// How often both are measured, in turn
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// How long each sort of load lasts, in seconds
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Objects of the row memory
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    objects: u64,
    /// Only the embedded server
    #[arg(long)]
    alone: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| e.to_string())
        .and_then(|runtime| runtime.block_on(run(&args)));
    match outcome {
        Ok(text) => {
            anstream::print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            anstream::eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &Args) -> Result<String, String> {
    let scale = Scale {
        warm: Duration::from_secs(1),
        time: Duration::from_secs(args.seconds),
        watchers: 1_000,
        list: 10_000,
        objects: args.objects,
    };
    let rows: Vec<Row> = if args.rows.is_empty() {
        Row::ALL.to_vec()
    } else {
        args.rows.clone()
    };
    let (mut ours, mut real) = (Table::default(), Table::default());
    for turn in 1..=args.runs {
        for kind in [Kind::Ours, Kind::Real] {
            if kind == Kind::Real && args.alone {
                continue;
            }
            anstream::eprintln!("{kind:?}, run {turn} of {} ...", args.runs);
            let subject = Subject::start(kind, &args.windlass, &args.disk).await?;
            let into = if kind == Kind::Ours { &mut ours } else { &mut real };
            measure(&subject, &rows, scale, into).await?;
        }
    }
    Ok(side_by_side(&ours, &real))
}
