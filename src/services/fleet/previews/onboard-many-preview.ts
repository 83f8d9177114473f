import type { Caller } from "../../call/caller.ts";
import type { RunDeps } from "../../run/deps.ts";
import type { NodeAsked } from "../node-input.ts";
import { checkNodes } from "../onboard-many.ts";
import { type OnboardingPreview, previewOnboarding } from "./onboard-preview.ts";

export interface PreviewedRow extends OnboardingPreview {
  readonly hostname: string;
}

/** At once: each reads here, and asks MAAS. */
const AT_ONCE = 8;

/**
 * What `onboardNodes` would do with these nodes, row by row and in their order. Rows that are wrong whatever the moment is refuse all of them, as in
 * the call itself. Without the stages, which are those of the profile.
 */
export async function previewOnboardings(
  deps: RunDeps,
  caller: Caller,
  nodes: readonly Omit<NodeAsked, "bmcPassword">[],
): Promise<readonly PreviewedRow[]> {
  const bmcPassword = ({ bmcUsername = "" }: Omit<NodeAsked, "bmcPassword">) => (bmcUsername === "" ? "" : "any");
  checkNodes({ requestId: "preview", nodes: nodes.map((node) => ({ ...node, bmcPassword: bmcPassword(node) })) });
  const rows: PreviewedRow[] = new Array(nodes.length);
  const places = nodes.entries();
  const previewNext = async () => {
    for (const [place, node] of places) {
      const preview = await previewOnboarding(deps, caller, node);
      rows[place] = { ...preview, stages: [], hostname: node.hostname };
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, previewNext));
  return rows;
}
