//! The plural of a kind, for the names of definitions.
//!
//! Controllers find the definition of a kind by its name, which they derive from the kind with English rules and exceptions. So a
//! definition with another name is never found, even if its own plural is right.

/// Words with an irregular plural if they are the whole kind.
const WHOLE: &str = "ox:oxen louse:lice die:dice axis:axes alias:aliases use:uses toe:toes";

/// Words with an irregular plural, also at the end of a kind.
const WORDS: &str = "equipment:equipment information:information jeans:jeans money:money news:news rice:rice \
    aircraft:aircraft beef:beef bison:bison blues:blues chassis:chassis deer:deer fish:fish moose:moose police:police salmon:salmon \
    series:series sheep:sheep shrimp:shrimp species:species trout:trout tuna:tuna you:you graffiti:graffiti media:media \
    woman:women human:humans man:men child:children foot:feet goose:geese mouse:mice tooth:teeth person:people \
    bureau:bureaus criterion:criteria lexicon:lexica phenomenon:phenomena taxon:taxa medium:media stadium:stadiums \
    aquarium:aquaria auditorium:auditoria symposium:symposia curriculum:curriculums quota:quotas agenda:agendas formula:formulas \
    alumnus:alumni cactus:cacti focus:foci locus:loci nucleus:nuclei octopus:octupuses radius:radii syllabus:syllabi \
    corpus:corpora genus:genera vita:vitae apex:apices codex:codices index:indices latex:latices vertex:vertices vortex:vortices \
    appendix:appendices radix:radices helix:helices crisis:crises ellipsis:ellipses genesis:geneses oasis:oases thesis:theses \
    testis:testes basis:bases base:bases misuse:misuses abuse:abuses clause:clauses cause:causes excuse:excuses fuse:fuses \
    house:houses muse:muses pause:pauses ache:aches topaz:topazes buffalo:buffaloes potato:potatoes tomato:tomatoes \
    dwarf:dwarfs hoof:hoofs thief:thieves chive:chives hive:hives movie:movies move:moves cookie:cookies shoe:shoes";

/// Endings; the first match wins. An ending that is already the plural of an earlier one is unchanged.
const ENDINGS: &str = "tive:tives eaf:eaves oaf:oaves afe:aves arf:arves rfe:rves rf:rves lf:lves fe:ves \
    ay:ays ey:eys oy:oys quy:quies uy:uys y:ies eau:eaux bula:bulae dula:bulae lula:bulae nula:bulae vula:bulae hedron:hedra \
    ium:ia seum:seums eum:ea oum:oa stracum:straca dum:da elum:ela ilum:ila olum:ola ulum:ula llum:lla ylum:yla imum:ima \
    ernum:erna gnum:gna brum:bra crum:cra terum:tera serum:sera trum:tra antum:anta atum:ata entum:enta etum:eta itum:ita \
    otum:ota utum:uta ctum:cta ovum:ova trix:trices iasis:iases mesis:meses kinesis:kineses resis:reses gnosis:gnoses \
    opsis:opses ysis:yses ouse:ouses lause:lauses us:uses ch:ches io:ios sh:shes ss:sses ez:ezzes iz:izzes tz:tzes zz:zzes \
    ano:anos lo:los to:tos oo:oos o:oes x:xes";

/// The name of a kind's definition: `awsclusters.infrastructure.cluster.x-k8s.io`.
pub(crate) fn definition_name(group: &str, kind: &str) -> String {
    format!("{}.{group}", plural(&kind.to_lowercase()))
}

fn plural(word: &str) -> String {
    let pairs = |list: &'static str| list.split_whitespace().filter_map(|pair| pair.split_once(':'));
    for (singular, plural) in pairs(WHOLE) {
        if word == singular || word == plural {
            return plural.to_owned();
        }
    }
    // A whole word takes precedence over its endings.
    if let Some((_, plural)) = pairs(WORDS).find(|(singular, _)| word == *singular) {
        return plural.to_owned();
    }
    for (singular, plural) in pairs(WORDS).chain(pairs(ENDINGS)) {
        if word.ends_with(plural) {
            return word.to_owned();
        }
        if let Some(stem) = word.strip_suffix(singular) {
            return format!("{stem}{plural}");
        }
    }
    if word.ends_with('s') {
        return word.to_owned();
    }
    format!("{word}s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_named_after_the_plural_of_their_kind() {
        let check = |kind: &str, expect: &str| {
            assert_eq!(definition_name("g.io", kind), format!("{expect}.g.io"), "{kind}");
        };
        check("AWSCluster", "awsclusters");
        check("AWSClusterStaticIdentity", "awsclusterstaticidentities");
        check("HelmChartProxy", "helmchartproxies");
        check("ClusterClass", "clusterclasses");
        check("IPAddress", "ipaddresses");
        check("Gateway", "gateways");
        check("Patch", "patches");
        check("Prefix", "prefixes");
        check("Index", "indices");
        check("Quota", "quotas");
        check("Status", "statuses");
        check("Database", "databases");
        check("Alias", "aliases");
        check("HostAlias", "hostalias");
        check("Leaf", "leaves");
        check("Media", "media");
        check("Series", "series");
        check("DNS", "dns");
        check("Echo", "echoes");
        check("Portfolio", "portfolios");
        check("Cache", "caches");
        check("Move", "moves");
        // So that definition states that it is not looked up.
        check("Metal3Data", "metal3data");
    }
}
