// Package spin watches a word that another processor is about to write.
package spin
