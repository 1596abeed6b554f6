// Package store keeps message bodies on disk: per-queue message files, their collection, and the manifest that a
// snapshot consists of. It knows records and files, not commands.
package store
