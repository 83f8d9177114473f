import { z } from "zod";
import { seconds } from "../../../kernel/time/duration.ts";
import { previewOnboardings } from "../../../services/fleet/previews/onboard-many-preview.ts";
import { type OnboardingPreview, previewOnboarding } from "../../../services/fleet/previews/onboard-preview.ts";
import type { RunDeps } from "../../../services/run/deps.ts";
import { listOf, many, objectOf, one } from "../envelopes.ts";
import { type AnyRoute, defineRoute } from "../route.ts";

/** Of a node that is to be onboarded. */
export const nodeAsked = {
  ...{ site: z.string(), profile: z.string(), sku: z.string(), hostname: z.string() },
  ipmi_ip: z.string().default("").describe("Of its management controller; only a manual node may have none."),
  mode: z.enum(["maas", "manual"]).default("maas"),
  bmc_username: z
    .string()
    .default("")
    .describe("The account that MAAS signs in with at the management controller. Requires the role admin."),
};

const stage = z.object({
  stage: z.string(),
  skipped: z.string().describe("Why; empty: it is not."),
  only_if: z.string().describe("The job comes to it only if this is so; empty: always."),
  deadline_seconds: z.number().describe("Of one try."),
  retries: z.int().describe("How often it is tried again in one round."),
  rounds: z.int().describe("How often the job enters it at most, unless people lead it back."),
});
const maas = z.object({
  outcome: z
    .enum(["create", "adopt", "refuse", "unknown", "none"])
    .describe("refuse: the job would fail there. unknown: MAAS was not asked, or did not answer."),
  message: z.string(),
  failure_class: z.string(),
  machine: z
    .object({ system_id: z.string(), hostname: z.string(), state: z.string(), status_name: z.string() })
    .nullable(),
});
const preview = z
  .object({
    machine_id: z.string().nullable(),
    registers_machine: z.boolean(),
    obstacles: z
      .array(z.object({ message: z.string(), field: z.string(), next: z.string() }))
      .describe("What the onboarding would be refused with: with the first of them."),
    ...{ stages: z.array(stage), maas },
    at_most_seconds: z.number().nullable().describe("How long the job may take by itself."),
    notes: z.array(z.string()),
  })
  .meta({ id: "FleetOnboardingPreview" });

function previewJson({
  machineId,
  registersMachine,
  obstacles,
  stages,
  maas: inMaas,
  atMost,
  notes,
}: OnboardingPreview) {
  const { outcome, message, failureClass, machine } = inMaas;
  return {
    ...{ machine_id: machineId, registers_machine: registersMachine, obstacles: [...obstacles], notes: [...notes] },
    stages: stages.map(({ onlyIf, deadline, ...rest }) => ({
      ...rest,
      ...{ only_if: onlyIf, deadline_seconds: deadline / seconds(1) },
    })),
    maas: {
      ...{ outcome, message, failure_class: failureClass },
      machine: machine && {
        ...{ system_id: machine.systemId, hostname: machine.hostname },
        ...{ state: machine.state, status_name: machine.statusName },
      },
    },
    at_most_seconds: atMost === null ? null : atMost / seconds(1),
  };
}

type Asked = z.infer<z.ZodObject<typeof nodeAsked>>;
const askedOf = ({ ipmi_ip, bmc_username, ...rest }: Asked) => ({
  ...{ ...rest, ipmiIp: ipmi_ip, bmcUsername: bmc_username },
});

export const onboardingPreviewRoute = (deps: RunDeps): AnyRoute =>
  defineRoute({
    ...{ method: "POST", path: "/api/v1/fleet/nodes/preview", tag: "fleet" },
    summary: "What an onboarding would do as things are now. Writes nothing, here or in MAAS.",
    body: z.strictObject(nodeAsked),
    example: { site: "lab", profile: "h100", sku: "gpu8", hostname: "gpu-17", ipmi_ip: "10.0.0.17" },
    answer: objectOf(preview),
    handle: async ({ body, caller }) => one(previewJson(await previewOnboarding(deps, caller, askedOf(body)))),
  });

/** Of a node of a batch. */
const row = preview.omit({ stages: true }).extend({ hostname: z.string() }).meta({ id: "FleetBatchPreviewRow" });

export const batchPreviewRoute = (deps: RunDeps): AnyRoute =>
  defineRoute({
    ...{ method: "POST", path: "/api/v1/fleet/batches/preview", tag: "fleet" },
    summary: "What onboarding many nodes would do as things are now. Writes nothing, here or in MAAS.",
    body: z.strictObject({ nodes: z.array(z.strictObject(nodeAsked)).min(1).max(1_000) }),
    example: { nodes: [{ site: "lab", profile: "h100", sku: "gpu8", hostname: "gpu-17", ipmi_ip: "10.0.0.17" }] },
    answer: listOf(row),
    handle: async ({ body: { nodes }, caller }) => {
      const rows = await previewOnboardings(deps, caller, nodes.map(askedOf));
      return many(
        rows.map(({ hostname, ...of }) => {
          const { stages: _, ...json } = previewJson(of);
          return { hostname, ...json };
        }),
        rows.length,
      );
    },
  });
