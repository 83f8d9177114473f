/**
 * The title of a group or test that is skipped without its counterpart. Only then does it say what it needs: by that, CI tells a missing
 * counterpart (a failure where it could have been installed) from a test that is skipped for a reason of its own.
 */
export const needing = (title: string, missing: string): string =>
  missing === "" ? title : `${title} (needs ${missing})`;
