package section

// MarkOf is markOf.
var MarkOf = markOf
