//! Conversion of the types that several kinds share.

use windlass_api::core as hub;

use super::{MachineNamingStrategy, MachineTemplateSpec, ObjectMeta};
use crate::convert::{ConversionError, References};
use crate::core::v1beta1::machine;
use crate::parts::some_text;

impl MachineTemplateSpec {
    pub(in crate::core::v1beta1) fn into_hub(
        self,
        min_ready_seconds: Option<i32>,
    ) -> Result<hub::MachineTemplateSpec, ConversionError> {
        let mut spec = machine::spec_to_hub("spec.template.spec", self.spec)?;
        spec.min_ready_seconds = min_ready_seconds;
        Ok(hub::MachineTemplateSpec {
            metadata: self.metadata.into_hub(),
            spec,
        })
    }

    /// The template, and `minReadySeconds`, which is beside it in this version.
    pub(in crate::core::v1beta1) fn from_hub(
        template: hub::MachineTemplateSpec,
        namespace: &str,
        references: &dyn References,
    ) -> Result<(Self, Option<i32>), ConversionError> {
        let (spec, min_ready_seconds) =
            machine::spec_from_hub("spec.template.spec", template.spec, namespace, references)?;
        let template = Self {
            metadata: ObjectMeta::from_hub(template.metadata),
            spec,
        };
        Ok((template, min_ready_seconds))
    }
}

pub(in crate::core::v1beta1) fn naming_to_hub(naming: Option<MachineNamingStrategy>) -> Option<hub::MachineNamingSpec> {
    let template = some_text(naming?.template)?;
    Some(hub::MachineNamingSpec {
        template: Some(template),
    })
}

pub(in crate::core::v1beta1) fn naming_from_hub(
    naming: Option<hub::MachineNamingSpec>,
) -> Option<MachineNamingStrategy> {
    let template = naming?.template.filter(|template| !template.is_empty())?;
    Some(MachineNamingStrategy { template })
}
