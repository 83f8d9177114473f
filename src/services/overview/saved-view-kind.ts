/** As in the journal. */
export const SAVED_VIEW_KIND = "saved_view";
