import { type LockedPackage, type LockFile, type Manifest, nameAt } from "./lock-file.ts";

/**
 * What Millwright ships with, as CycloneDX: each package that an installation may hold, and what needs what. The lock file
 * decides, and there is neither time nor random number in it, so that the same checkout gives the same text.
 */
export function sbom({ packages, workspaces }: LockFile, manifest: Manifest): string {
  const shipped = new Map([...packages].filter(([, locked]) => locked.dev !== true && locked.devOptional !== true));
  const self = { name: manifest.name, version: manifest.version };
  const needs = (place: string, locked: Manifest | LockedPackage): readonly string[] =>
    Object.keys({ ...locked.dependencies, ...locked.optionalDependencies })
      .flatMap((name) => placeOf(name, place, shipped) ?? [])
      .map((needed) => refOf(needed, shipped.get(needed) as LockedPackage));
  const document = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      component: {
        type: "application",
        "bom-ref": purl(self.name, self.version),
        ...self,
        description: manifest.description,
        licenses: [{ license: { id: manifest.license } }],
        purl: purl(self.name, self.version),
      },
    },
    components: distinct([...shipped].map(([place, locked]) => component(place, locked))),
    dependencies: [
      {
        ref: purl(self.name, self.version),
        dependsOn: unique([manifest, ...workspaces].flatMap((own) => needs("", own))),
      },
      ...distinct(
        [...shipped].map(([place, locked]) => ({
          "bom-ref": refOf(place, locked),
          dependsOn: unique(needs(place, locked)),
        })),
      ).map(({ "bom-ref": ref, dependsOn }) => ({ ref, dependsOn })),
    ],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

const purl = (name: string, version = ""): string => `pkg:npm/${name.replace("@", "%40")}@${version}`;
const refOf = (place: string, { version }: LockedPackage): string => purl(nameAt(place), version);
const unique = (refs: readonly string[]): readonly string[] => [...new Set(refs)].sort();

/** One package may stand at several places. */
const distinct = <T extends { readonly "bom-ref": string }>(all: readonly T[]): readonly T[] =>
  [...new Map(all.map((one) => [one["bom-ref"], one])).values()].sort((a, b) => (a["bom-ref"] < b["bom-ref"] ? -1 : 1));

function component(place: string, locked: LockedPackage) {
  const [algorithm = "", digest = ""] = (locked.integrity ?? "").split("-");
  const { license } = locked;
  return {
    type: "library",
    "bom-ref": refOf(place, locked),
    name: nameAt(place),
    version: locked.version ?? "",
    scope: locked.optional === true ? "optional" : "required",
    hashes: [{ alg: algorithm.replace("sha", "SHA-"), content: Buffer.from(digest, "base64").toString("hex") }],
    ...(license !== undefined && {
      licenses: [/[ (]/.test(license) ? { expression: license } : { license: { id: license } }],
    }),
    purl: refOf(place, locked),
  };
}

/** Where Node finds a package: beside the one that needs it or beside one of those above. Undefined where it is not shipped. */
function placeOf(name: string, from: string, shipped: ReadonlyMap<string, LockedPackage>): string | undefined {
  for (let above = from; ; above = above.slice(0, Math.max(0, above.lastIndexOf("/node_modules/")))) {
    const place = `${above === "" ? "" : `${above}/`}node_modules/${name}`;
    if (shipped.has(place)) return place;
    if (above === "") return undefined;
  }
}
