import { AppError } from "../../kernel/errors.ts";

/** What people call a thing. */
export interface Metadata {
  readonly name: string;
  readonly description: string;
  readonly labels: Readonly<Record<string, string | null>>;
}

const NAME = { least: 2, most: 256 } as const;
const LONGEST_DESCRIPTION = 1_024;
const MOST_LABELS = 10;
const LONGEST_LABEL = 255;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the rule is ASCII, which has them
const ASCII = /^[\x00-\x7f]*$/;

/** An empty name is allowed only where one is given by default. */
export function checkMetadata(
  metadata: Metadata,
  options: {
    /** Where in the request it stands; empty: at its top. */
    readonly field: string;
    readonly nameMayBeEmpty?: boolean;
  },
): Metadata {
  const { name, description, labels } = metadata;
  const refuse = (part: string, rule: string) => {
    const field = options.field === "" ? part : `${options.field}.${part}`;
    throw new AppError("invalid_argument", `${field}: ${rule}`, { field });
  };
  const lengthIsRight = name.length >= NAME.least && name.length <= NAME.most;
  if (!(name === "" && options.nameMayBeEmpty) && (!lengthIsRight || !ASCII.test(name))) {
    refuse("name", `must have ${NAME.least} to ${NAME.most} ASCII characters`);
  }
  if (description.length > LONGEST_DESCRIPTION) refuse("description", `at most ${LONGEST_DESCRIPTION} characters`);
  if (Object.keys(labels).length > MOST_LABELS) refuse("labels", `at most ${MOST_LABELS} labels`);
  for (const [key, value] of Object.entries(labels)) {
    if (key === "" || key.length > LONGEST_LABEL || !ASCII.test(key))
      refuse("labels", `keys must have 1 to ${LONGEST_LABEL} ASCII characters`);
    if (value !== null && value.length > LONGEST_LABEL)
      refuse("labels", `the value of ${JSON.stringify(key)} has more than ${LONGEST_LABEL} characters`);
  }
  return metadata;
}

/** Versions on the wire: their number and the time since when they hold, in microseconds. */
export const versionText = (number: number, since: Date): string => `V${number}-T${since.getTime() * 1_000}`;
