import { createTheme } from "@mantine/core";

/** One family, three sizes, no decoration. What is of our own is in `base.css`. */
export const theme = createTheme({
  fontFamily: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif",
  fontFamilyMonospace: "var(--mono)",
  fontSizes: { xs: "12px", sm: "14px", md: "14px", lg: "18px", xl: "18px" },
  defaultRadius: 4,
  primaryColor: "blue",
  primaryShade: { light: 8, dark: 8 },
  autoContrast: true,
  respectReducedMotion: true,
  components: {
    // By its name: dialogs load with the first of them. The line with a dialog's title is no banner of the page, and a cross needs a name.
    Modal: { defaultProps: { closeButtonProps: { "aria-label": "Close" }, attributes: { header: { role: "none" } } } },
  },
});
