import type { DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import type { ReactNode } from "react";
import type { AskedField } from "./action-fields.ts";

/** Something that its reader can have done: a call, with what it will do said first. */
export interface Action<M extends DescMethodUnary = DescMethodUnary> {
  /** What the button says: a verb, and to how many things. */
  readonly label: string;
  /** What it will do, and whether it can be undone. */
  readonly says: string;
  readonly method: M;
  /** Without what the dialog asks for and without a request id. */
  readonly request: MessageInitShape<M["input"]>;
  /** The same for a terminal; empty where no command does it. */
  readonly cli: string;
  readonly isDangerous?: boolean;
  /** What is asked for. Absent: every text and flag of the call that the request does not give. */
  readonly asks?: readonly AskedField[];
  /** What it would do as things are now. */
  readonly preview?: ReactNode;
  /** Does it by several calls of the method, one for each thing. Absent: it is one call. */
  readonly perform?: () => Promise<readonly ActionResult[]>;
  /** What came of each of several things; they are shown in the dialog. Absent: it was one thing. */
  readonly resultsOf?: (answer: unknown) => readonly ActionResult[];
  /** Where to go once it is done. */
  readonly leadsTo?: (answer: unknown) => string | undefined;
}

/** What came of one thing of several. */
export interface ActionResult {
  readonly kind: string;
  readonly id: string;
  /** The run that does it. */
  readonly runId?: string;
  /** Why nothing is done with it; empty where something is. */
  readonly refusal: string;
  /** The command that helps. */
  readonly next: string;
}

/** Keeps the types of method and request together. */
export const defineAction = <M extends DescMethodUnary>(action: Action<M>): Action => action as unknown as Action;
