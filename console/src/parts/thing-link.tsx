import { Link } from "@tanstack/react-router";
import { pathOfThing } from "../pages/thing-path.ts";

interface ThingLinkProps {
  readonly kind: string;
  readonly id: string;
  /** With the kind before it. */
  readonly withKind?: boolean;
  /** In the place of the id. */
  readonly text?: string;
}

/** To the page of a thing; its id alone where the console has no page for its kind. */
export function ThingLink({ kind, id, withKind = false, text: given }: ThingLinkProps) {
  const path = pathOfThing(kind, id);
  const text = given ?? (withKind ? `${kind.replaceAll("_", " ")} ${shortId(id)}` : shortId(id));
  return path === undefined ? (
    <span title={id}>{text}</span>
  ) : (
    <Link to={path} title={id}>
      {text}
    </Link>
  );
}

/** The middle of a long id tells nobody anything. */
export const shortId = (id: string): string => (id.length <= 26 ? id : `${id.slice(0, 14)}…${id.slice(-6)}`);
