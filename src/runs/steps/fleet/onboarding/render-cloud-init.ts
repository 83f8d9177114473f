import { observe } from "../../../../kernel/effects.ts";
import { StepFailure } from "../../../../kernel/errors.ts";
import { seconds } from "../../../../kernel/time/duration.ts";
import { failedAs } from "../../../../lifecycles/fleet-node/failure-classes.ts";
import { fleetNodeLifecycle } from "../../../../lifecycles/fleet-node/lifecycle.ts";
import { type Acted, defineStepOn, type ProbeReport } from "../../../model/step.ts";
import { nameOf, type Onboarding, type OnOnboarding, parseOnboarding } from "./on-onboarding.ts";
import { joinUserData, typeOfUserData } from "./user-data.ts";

/**
 * Puts the node's single-use enrolment on record, of which only the hash is kept, and checks that user data can be made for it. The user
 * data itself is made again when the deployment is ordered, and is kept nowhere.
 */
export const renderCloudInit = defineStepOn<OnOnboarding>()({
  kind: "render_cloud_init",
  needs: [],
  defaults: { timeout: seconds(60), maxRetries: 2 },
  actsByEffectsOnly: true,
  parse: parseOnboarding,
  async before(context) {
    return { issue: issueFor(context).enrollment.issue };
  },
  async act(context): Promise<Acted> {
    const { enrollment } = issueFor(context);
    return { effects: [observe(fleetNodeLifecycle, context.target.id, { enrollment })] };
  },
  async probe(context): Promise<ProbeReport> {
    const { evidence, target: node } = context;
    if (node.facts.enrollment?.issue !== evidence.issue)
      return { state: "not_done", message: "its enrolment is not on record yet" };
    const text = await renderUserData(context);
    const message = `${Buffer.byteLength(text)} bytes of user data, with enrolment ${evidence.issue}`;
    return { state: "done", message };
  },
});

export const issueFor = ({ enrolment, payload }: Onboarding) =>
  enrolment.issue(seconds(payload.policy.enrollment_token_ttl_seconds));

/** With the token that is on record. */
export async function renderUserData(context: Onboarding): Promise<string> {
  const { payload, bundle, enrolment, target } = context;
  const { site_bootstrap_bundle_ref: name } = payload.policy;
  const ofSite = name === null ? null : await bundle(name);
  if (ofSite !== null && typeOfUserData(ofSite) === undefined)
    throw failedAs(
      "bundle_missing",
      `site bundle ${name} is no user data: it begins neither with #cloud-config nor with #!`,
      {
        name: name ?? "",
      },
    );
  const { token, enrollment } = issueFor(context);
  if (enrollment.issue !== target.facts.enrollment?.issue)
    throw new StepFailure(
      "changed_meanwhile",
      `enrolment ${enrollment.issue} of ${nameOf(target)} is not on record yet`,
    );
  return joinUserData(ofSite, enrolment.userDataWith(token));
}
