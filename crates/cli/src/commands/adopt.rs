//! `windlass adopt`.

use std::process::ExitCode;

use jiff::Timestamp;
use windlass_manager::change_over::{self, Place, Scene, State, Step};
use windlass_manager::{FeatureGates, WebhookTarget, network};
use windlass_preview::adopt::{Trial, adopt};
use windlass_preview::model::Verdict;
use windlass_preview::render::{adoption, data};

use crate::args::adopting::{AdoptArgs, AdoptOutput};
use crate::error::CliError;
use crate::printer::Printer;

/// The exit code when something would change, or a step is left.
const LEFT: u8 = 2;

/// Prints what a take-over would change, or its steps.
pub(crate) async fn run(args: Box<AdoptArgs>, printer: &Printer) -> Result<ExitCode, CliError> {
    // A wrong use has another exit code than a change.
    WebhookTarget::service(&args.webhook_service).map_err(|why| CliError::plain(why, None))?;
    let config = network::config(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
    let namespace = args.lease_namespace.clone();
    let place = Place {
        webhooks: args.webhook_service.clone(),
        lease: (
            namespace.unwrap_or_else(|| config.default_namespace.clone()),
            args.lease_name.clone(),
        ),
    };
    let client = network::connect_patiently(&config).await?;
    let trial = Trial {
        controllers: args.controllers.clone(),
        gates: FeatureGates::of(&args.feature_gates)
            .map_err(|why| CliError::plain(format!("--feature-gates: {why}"), None))?,
        timeout: args.timeout,
    };
    if args.way_back {
        let scene = Scene::read(&client, &place, Timestamp::now()).await?;
        return steps(&change_over::way_back(&scene), args.output, printer);
    }
    if args.take_over {
        let scene = Scene::read(&client, &place, Timestamp::now()).await?;
        // Nothing is tried any more when the managers have stopped: what is half done is finished.
        let differences = if scene.is_begun() {
            None
        } else {
            let report = adopt(client, &trial).await?;
            (report.verdict() != Verdict::Same).then(|| adoption::summary(&report))
        };
        return steps(
            &change_over::take_over(&scene, differences, &place),
            args.output,
            printer,
        );
    }
    let report = adopt(client, &trial).await?;
    printer.text(&match args.output {
        AdoptOutput::Text => adoption::text(&report),
        AdoptOutput::Json => data::json(&report),
        AdoptOutput::Yaml => data::yaml(&report),
    })?;
    Ok(match report.verdict() {
        Verdict::Same => ExitCode::SUCCESS,
        Verdict::Changes => ExitCode::from(LEFT),
        Verdict::Problems => ExitCode::FAILURE,
    })
}

fn steps(steps: &[Step], output: AdoptOutput, printer: &Printer) -> Result<ExitCode, CliError> {
    printer.text(&match output {
        AdoptOutput::Text => text(steps),
        AdoptOutput::Json => data::json(&steps),
        AdoptOutput::Yaml => data::yaml(&steps),
    })?;
    let is_done = steps.iter().all(|step| step.state == State::Done);
    Ok(if is_done {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(LEFT)
    })
}

/// The steps as a list, with the commands of the next one.
fn text(steps: &[Step]) -> String {
    let mut lines = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let mark = match step.state {
            State::Done => "done",
            State::Next => "next",
            State::Later => "    ",
        };
        lines.push(format!("{mark}  {}. {}", index + 1, step.title));
        if step.state == State::Next {
            lines.extend(step.shown_by.iter().map(|shown| format!("         {shown}")));
            lines.extend(step.commands.iter().map(|command| format!("         $ {command}")));
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_step_has_its_commands() {
        let step = |title: &str, state: State| Step {
            title: title.to_owned(),
            state,
            shown_by: vec![format!("{title} is not done")],
            commands: vec![format!("do {title}")],
        };
        let shown = text(&[step("a", State::Done), step("b", State::Next), step("c", State::Later)]);
        assert_eq!(
            shown,
            "done  1. a\nnext  2. b\n         b is not done\n         $ do b\n      3. c\n"
        );
    }
}
